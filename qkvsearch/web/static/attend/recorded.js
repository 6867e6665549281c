// What was recorded of a transformer, for servers without one.

let records = null;

/** A recorded answer as the server gives it: weights were written in whole numbers of `unit`. */
function asAnswered(answer, unit) {
  const number = (weight) => (weight === null ? null : weight / unit);
  const maps = answer.maps.map((map) => ({ ...map, weights: map.weights.map((row) => row.map(number)) }));
  return { ...answer, maps };
}

/** The answers to an example by its place: to its sentence, and to the one that it is compared with. */
export async function fromRecord(file, place) {
  records ??= await (await fetch(file)).json();
  const { unit, answers, controls } = records;
  const control = controls[place];
  return { answer: asAnswered(answers[place], unit), control: control && asAnswered(control, unit) };
}
