"""The quizzes of the ten lessons, a file each; answers come from the lesson's own steps."""
