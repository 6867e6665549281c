// A switch: the setting whose button is pressed is shown, the others are not.

const startSwitch = (part) => {
  const group = part.querySelector(".controls");
  const buttons = [...group.querySelectorAll("button")];
  const choose = (chosen) => {
    for (const button of buttons) {
      button.ariaPressed = button === chosen;
      document.getElementById(button.getAttribute("aria-controls")).hidden = button !== chosen;
    }
  };
  for (const button of buttons) button.addEventListener("click", () => choose(button));
  group.hidden = false;
  choose(buttons[0]);
};
