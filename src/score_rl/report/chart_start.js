for (const figure of document.querySelectorAll("figure.curves")) {
  const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  if (data.kind === "dots") new Dots(figure, data);
  else new Curves(figure, data);
}
