// Elements, and lists of them that change only where something has changed.

const find = (id) => document.getElementById(id);

/** Make an element. Text goes in as text only: what agents and customers write is never markup. */
export function el(name, properties = {}, ...children) {
  const { data, aria, ...rest } = properties;
  const element = Object.assign(document.createElement(name), rest);
  Object.assign(element.dataset, data);
  for (const [key, value] of Object.entries(aria ?? {})) element.setAttribute(`aria-${key}`, value);
  element.append(...children.filter(Boolean));
  return element;
}

/**
 * Let an element hold these parts, each given as [key, facts, view].
 *
 * Only a part whose facts have changed is drawn anew: whoever is about to press a button, or writes
 * in a field, is not disturbed by what happens elsewhere. Where the part with the focus is drawn
 * anew, the element of the same id has it again, or the one whose id is in its data-then.
 */
export function fill(parent, parts) {
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const keys = new Set(parts.map(([key]) => key));
  for (const [key, child] of old) if (!keys.has(key)) child.remove();
  parts.forEach(([key, facts, view], index) => {
    const text = JSON.stringify(facts);
    let child = old.get(key);
    if (!child || child.facts !== text) {
      const drawn = Object.assign(view(facts), { facts: text });
      drawn.dataset.key = key;
      child?.replaceWith(drawn);
      child = drawn;
    }
    if (parent.children[index] !== child)
      parent.insertBefore(child, parent.children[index] ?? null);
  });
  if (focused && !focused.isConnected) (find(focused.id) ?? find(focused.dataset.then))?.focus();
}
