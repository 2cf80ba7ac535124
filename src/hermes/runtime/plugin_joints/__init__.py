"""What the runtime does for plugins: a module each, whose `JOINT` `hermes.extensions.plugins.joints` describes."""
