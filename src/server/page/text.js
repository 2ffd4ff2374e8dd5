// Text of a message as nodes: fenced code, `code` and **bold**; all else as it is. No HTML is ever made of it.

function make(tag, text) {
  const node = document.createElement(tag);
  node.textContent = text;
  return node;
}

function renderLine(text) {
  return text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((part) => {
    if (part.length > 2 && part.startsWith("`") && part.endsWith("`")) return make("code", part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**") && part.endsWith("**")) return make("strong", part.slice(2, -2));
    return part;
  });
}

/** The nodes of a text; a fence that is still open counts as code to its end. */
export function renderText(text) {
  return text.split(/^```/m).flatMap((part, i) => {
    if (i % 2 === 0) return renderLine(i > 0 ? part.replace(/^\n/, "") : part);
    const block = document.createElement("pre");
    block.tabIndex = 0; // it may scroll
    block.append(make("code", part.replace(/^[^\n]*\n?/, "")));
    return [block];
  });
}
