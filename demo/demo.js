// Fetches a few small files and shows by which protocol each of them came.
"use strict";

const FILES = [
  "/files/hello.txt",
  "/files/data.json",
  "/files/picture.jpg",
  "/bolide.svg",
  "/style.css",
];

const NAMES = { "http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", h2: "HTTP/2", h3: "HTTP/3" };

function badge(protocol) {
  const mark = document.createElement("span");
  mark.className = `badge ${protocol.replace(/[^a-z0-9]/g, "")}`;
  mark.dataset.protocol = protocol;
  mark.textContent = NAMES[protocol] || protocol || "unknown";
  return mark;
}

function row(entry) {
  const line = document.createElement("tr");
  const cells = [
    new URL(entry.name).pathname,
    badge(entry.nextHopProtocol),
    `${entry.duration.toFixed(1)} ms`,
    `${entry.encodedBodySize}`,
  ];
  cells.forEach((content, column) => {
    const cell = line.insertCell();
    if (column > 1) cell.className = "n";
    cell.append(content);
  });
  return line;
}

function showOwn() {
  const [own] = performance.getEntriesByType("navigation");
  document.getElementById("own").replaceChildren(badge(own.nextHopProtocol));
}

async function fetchAll() {
  performance.clearResourceTimings();
  // The number keeps the browser from answering out of its own cache.
  const stamp = performance.now().toString(36).replace(".", "");
  const urls = FILES.map((file) => `${file}?${stamp}`);
  await Promise.all(
    urls.map(async (url) => {
      const answer = await fetch(url, { cache: "no-store" });
      await answer.arrayBuffer();
    }),
  );
  const entries = performance
    .getEntriesByType("resource")
    .filter((entry) => entry.name.endsWith(stamp));
  document.getElementById("requests").replaceChildren(...entries.map(row));
}

function showFailure(error) {
  document.getElementById("note").textContent = `The files could not be fetched: ${error.message}`;
}

showOwn();
fetchAll().catch(showFailure);
document.getElementById("again").addEventListener("click", () => fetchAll().catch(showFailure));
