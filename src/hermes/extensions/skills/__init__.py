"""Skills: folders with a SKILL.md, whose words are given to the model when they are needed."""
