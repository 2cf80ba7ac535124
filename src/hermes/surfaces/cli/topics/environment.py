"""The variables that Hermes reads.

  HERMES_HOME       where everything is kept; ~/.hermes without it
  HERMES_PROFILE    the profile to use, as -p would
  HERMES_MODEL      the model, over config.yaml and under --model
  HERMES_IGNORE_RULES, HERMES_IGNORE_USER_CONFIG, HERMES_YOLO_MODE
                    the same as --ignore-rules, --ignore-user-config, --yolo
  HERMES_DEBUG      show the traceback when Hermes itself fails
  NO_COLOR          no colours
  VISUAL, EDITOR    the editor of `hermes config edit`

Keys of providers (such as OPENROUTER_API_KEY) are read from the environment, or from
.env in the home. Each setting that has a variable names it: hermes config explain KEY.
All of them: docs/configuration.md.
"""
