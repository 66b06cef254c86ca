'use strict';

const matrices = [...document.querySelectorAll('.matrix')];
const states = {clusters: 'ordered by clusters', alphabetical: 'ordered alphabetically'};

function order(key) {
  document.body.dataset.order = key;
  for (const drawing of document.querySelectorAll('.matrix [data-order]')) {
    drawing.hidden = drawing.dataset.order !== key;
  }
  for (const button of document.querySelectorAll('.control button')) {
    button.setAttribute('aria-pressed', String(button.value === key));
  }
  for (const state of document.querySelectorAll('.order-state')) {
    state.textContent = states[key];
  }
}

// Shows the title of a cell below its matrix.
function read(cell) {
  cell.closest('.matrix').querySelector('.readout').textContent = cell.querySelector('title').textContent;
}

// Arrow keys, Home and End move the focus from cell to cell; one cell of a matrix is in the order of tabs.
function move(event) {
  const cell = event.target;
  const cells = [...cell.parentNode.children];
  const count = Number(cell.closest('.matrix').dataset.count);
  const at = cells.indexOf(cell);
  const column = at % count;
  const goal = {
    ArrowLeft: column > 0 ? at - 1 : at,
    ArrowRight: column < count - 1 ? at + 1 : at,
    ArrowUp: at - count,
    ArrowDown: at + count,
    Home: at - column,
    End: at - column + count - 1,
  }[event.key];
  if (goal === undefined || !cells[goal]) return;
  event.preventDefault();
  cell.setAttribute('tabindex', '-1');
  cells[goal].setAttribute('tabindex', '0');
  cells[goal].focus();
  read(cells[goal]); // a window in the background gets no focus event
}

for (const matrix of matrices) {
  for (const kind of ['pointerover', 'focusin', 'click']) {
    matrix.addEventListener(kind, event => {
      const cell = event.target.closest('.parts rect');
      if (cell) read(cell);
    });
  }
  for (const cells of matrix.querySelectorAll('.parts')) {
    cells.addEventListener('keydown', move);
  }
  matrix.querySelector('.readout').textContent =
    'Point at a cell, or move from cell to cell with the arrow keys, to read it in full.';
}
for (const button of document.querySelectorAll('.control button')) {
  button.addEventListener('click', () => order(button.value));
}
document.body.classList.add('script');
order('clusters');
