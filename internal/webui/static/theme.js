// The theme that somebody has chosen, before anything is drawn; without one the system's counts.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem('hearth.theme');
  } catch { /* storage is off: the system's */ }
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
})();
