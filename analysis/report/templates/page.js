'use strict';

const matrices = [...document.querySelectorAll('table.matrix')];
const states = {clusters: 'ordered by clusters', alphabetical: 'ordered alphabetically'};

// Rows and columns take the places in data-clusters or data-alphabetical of their headings.
function reorder(table, key) {
  const count = Number(table.dataset.count);
  const place = heading => Number(heading.dataset[key]);
  const head = [...table.tHead.rows[0].cells].slice(1, count + 1);
  const columns = head.map((_, k) => k).sort((a, b) => place(head[a]) - place(head[b]));
  const body = [...table.tBodies[0].rows].sort((a, b) => place(a.cells[0]) - place(b.cells[0]));
  const foot = table.tFoot ? [...table.tFoot.rows] : [];
  for (const row of [table.tHead.rows[0], ...body, ...foot]) {
    const cells = [...row.cells];
    const rest = cells[count + 1] || null;
    columns.forEach(k => row.insertBefore(cells[k + 1], rest));
  }
  table.tBodies[0].append(...body);
}

function order(key) {
  matrices.forEach(table => reorder(table, key));
  document.body.dataset.order = key;
  for (const button of document.querySelectorAll('.control button')) {
    button.setAttribute('aria-pressed', String(button.value === key));
  }
  for (const state of document.querySelectorAll('.order-state')) {
    state.textContent = states[key];
  }
}

// Shows what a cell says and marks the headings of its row and column.
function read(cell) {
  const table = cell.closest('table');
  const readout = cell.closest('section').querySelector('.readout');
  readout.textContent = cell.title;
  table.querySelectorAll('th.on').forEach(heading => heading.classList.remove('on'));
  table.tHead.rows[0].cells[cell.cellIndex].classList.add('on');
  cell.parentNode.cells[0].classList.add('on');
}

function move(event) {
  const cell = event.target.closest('td[tabindex]');
  if (!cell) return;
  const row = cell.parentNode;
  const rows = row.parentNode.rows;
  const at = row.sectionRowIndex;
  const count = Number(cell.closest('table').dataset.count);
  const next = {
    ArrowLeft: () => row.cells[cell.cellIndex - 1],
    ArrowRight: () => row.cells[cell.cellIndex + 1],
    ArrowUp: () => at > 0 && rows[at - 1].cells[cell.cellIndex],
    ArrowDown: () => at + 1 < rows.length && rows[at + 1].cells[cell.cellIndex],
    Home: () => row.cells[1],
    End: () => row.cells[count],
  }[event.key];
  const goal = next && next();
  if (!goal || !goal.hasAttribute('tabindex')) return;
  event.preventDefault();
  cell.tabIndex = -1;
  goal.tabIndex = 0;
  goal.focus();
  read(goal); // a window in the background gets no focus event
}

for (const table of matrices) {
  for (const kind of ['pointerover', 'focusin', 'click']) {
    table.addEventListener(kind, event => {
      const cell = event.target.closest('td[title]');
      if (cell) read(cell);
    });
  }
  table.addEventListener('keydown', move);
}
for (const button of document.querySelectorAll('.control button')) {
  button.addEventListener('click', () => order(button.value));
}
for (const readout of document.querySelectorAll('.readout')) {
  readout.textContent = 'Point at a cell, or move from cell to cell with the arrow keys, to read it in full.';
}
document.body.classList.add('script');
order('clusters');
