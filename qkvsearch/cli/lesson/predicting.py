"""Predict before you look: a number of a step is asked for before its matrix is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qkvsearch.cli.lesson.quizzing import prompt
from qkvsearch.lessons.messages import say, shown
from qkvsearch.lessons.parts import Matrix, Step
from qkvsearch.lessons.quizzes import read_numbers

# What a matrix must be to be predicted: it follows from what was shown before.
COMPUTED = ("score", "weights", "output")
# Nearer than this is right.
NEAR = 0.05


@dataclass(eq=False)
class Prediction:
    """A cell of a matrix, and what somebody said that it would be; None for nothing."""

    matrix: Matrix
    row: int
    column: int
    said: float | None = field(default=None, init=False)

    @classmethod
    def of(cls, step: Step) -> Prediction | None:
        """Choose the largest number of the step's first computed matrix; None without one."""
        for part in step.parts:
            if isinstance(part, Matrix) and part.role in COMPUTED and np.isfinite(part.array).any():
                array = np.where(np.isfinite(part.array), part.array, -np.inf)
                row, column = np.unravel_index(array.argmax(), array.shape)
                return cls(part, int(row), int(column))
        return None

    @property
    def answer(self) -> float:
        return float(self.matrix.array[self.row, self.column])

    def ask(self) -> None:
        """Ask for the number; Enter alone is no prediction."""
        typed = prompt(
            say(
                "Predict: {matrix}, row {row}, column {column}?",
                matrix=self.matrix.name,
                row=self.matrix.rows[self.row],
                column=self.matrix.columns[self.column],
            )
        )
        numbers = read_numbers(typed)
        self.said = numbers[0] if len(numbers) == 1 else None

    def judged(self) -> str:
        """Return the number beside what was predicted."""
        if self.said is None:
            return say("It is {answer}.", answer=self.answer)
        if abs(self.said - self.answer) <= NEAR:
            return say("As you said: {answer}.", answer=self.answer)
        return say("You said {said}; it is {answer}.", said=shown(self.said), answer=self.answer)
