"""Names of files and folders that matter to a confinement: tables, nothing is looked at."""

# Below the home folder. Configuration that names a package index (.npmrc, pip.conf, .m2/settings.xml) is not among
# them: without it nothing can be installed.
SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg"),
    *(".git-credentials", ".pgpass", ".my.cnf", ".mylogin.cnf", ".pypirc", ".vault-token", ".boto", ".s3cfg", ".age"),
    *(".password-store", ".gem/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".oci", ".databrickscfg"),
    *(".terraform.d/credentials.tfrc.json", ".terraformrc", ".config/git/credentials", ".config/gcloud", ".config/gh"),
    *(
        ".config/glab-cli",
        ".config/hub",
        ".config/doctl",
        ".config/op",
        ".config/rclone",
        ".config/sops",
        ".config/age",
    ),
    *(
        ".config/containers/auth.json",
        ".config/google-chrome",
        ".config/chromium",
        ".config/BraveSoftware",
        ".1password",
    ),
    *(".config/microsoft-edge", ".config/Bitwarden CLI", ".config/keybase", ".config/hcloud", ".config/configstore"),
    *(
        ".config/github-copilot",
        ".mozilla",
        ".thunderbird",
        ".local/share/keyrings",
        ".local/share/kwalletd",
        ".snowsql",
    ),
    *(
        ".local/share/mkcert",
        ".local/share/containers",
        ".claude/.credentials.json",
        ".claude.json",
        ".codex/auth.json",
    ),
    *(".gemini", ".config/gspread", ".kaggle", ".huggingface/token", ".cache/huggingface/token", ".modal.toml"),
    *(".netlify", ".fly", ".vercel", ".heroku", ".electrum", ".bitcoin", ".ethereum", ".purple", ".config/fly"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".node_repl_history"),
    *(".sqlite_history", ".rediscli_history", ".local/share/fish/fish_history", ".lesshst", ".viminfo"),
    *(".Xauthority", ".ICEauthority", ".config/systemd/user", ".k8s", ".minikube", ".config/helm"),
)
SYSTEM_SECRETS = (
    *(
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/krb5.keytab",
    ),
    *("/etc/ssl/private", "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/letsencrypt"),
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/sss", "/var/spool/cron", "/etc/security/opasswd"),
)
# The keys of the machine itself, by how their names end.
HOST_KEYS = ("/etc/ssh", "_key")
# Where the machine's sockets live. A program may make sockets of its own there, in a folder that is private to it.
SOCKET_FOLDERS = ("/run", "/var/run")
SOCKET_FILES = (  # below the home folder
    *(".docker/run", ".docker/desktop", ".colima", ".lima", ".orbstack", ".rd", ".gnupg", ".local/share/tmux"),
    *(".local/share/containers/podman", ".config/emacs/server", ".emacs.d/server", ".vscode-server", ".cursor-server"),
)
SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "GPG_AGENT_INFO", "I3SOCK", "SWAYSOCK", "NVIM_LISTEN_ADDRESS", "ZELLIJ_SOCKET_DIR")
# Variables that lead to a socket which is not there inside.
DROPPED_VARIABLES = (
    *(
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "DBUS_SESSION_BUS_ADDRESS",
        "TMUX",
        "TMUX_PANE",
        "STY",
        "DISPLAY",
        "WAYLAND_DISPLAY",
    ),
    *("DOCKER_HOST", "GPG_AGENT_INFO", "I3SOCK", "SWAYSOCK", "NVIM_LISTEN_ADDRESS", "NVIM", "XAUTHORITY"),
    *("SESSION_MANAGER", "VSCODE_IPC_HOOK_CLI", "VSCODE_GIT_IPC_HANDLE", "GIT_ASKPASS", "SSH_ASKPASS", "ZELLIJ"),
)

# Of HERMES_HOME: what commands may read. Everything else in it is hidden.
VISIBLE_IN_HERMES_HOME = ("skills", "tools", "plugins")

# In the workspace: what other programs believe.
PROTECTED = (".hermes",)
# In the workspace: what other programs run by themselves, when a folder is entered, opened or pushed.
SELF_RUNNING = (
    *(
        ".envrc",
        ".vscode",
        ".idea",
        ".devcontainer",
        ".devcontainer.json",
        ".zed",
        ".fleet",
        ".exrc",
        ".vimrc",
        ".nvimrc",
    ),
    *(".nvim.lua", ".vim", ".dir-locals.el", ".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci"),
    *(".travis.yml", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker"),
    *(".woodpecker.yml", ".forgejo", ".gitea", ".buildkite", "appveyor.yml", ".appveyor.yml", ".husky", ".lefthook"),
    *("lefthook.yml", ".pre-commit-config.yaml", ".autoenv", ".env.lua", ".claude", ".codex", ".cursor"),
)
# In a git folder.
GIT_HOOKS = "hooks"
GIT_CONFIGS = ("config", "config.worktree")
# In a virtualenv.
INTERPRETERS = ("bin/python", "bin/python3", "pyvenv.cfg")
# In the home folder, where that is the workspace: start files of shells and sessions.
START_FILES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv"),
    *(
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".inputrc",
        ".config/fish",
        ".pam_environment",
    ),
    *(
        ".config/autostart",
        ".config/environment.d",
        ".gitconfig",
        ".config/git",
        ".local/bin",
        "bin",
        ".local/lib",
        ".vimrc",
    ),
    *(
        ".npmrc",
        ".config/pip",
        ".pip",
        ".cargo/config.toml",
        ".cargo/bin",
        ".pyenv",
        ".nvm",
        ".rustup",
        ".config/direnv",
    ),
    *(".hgrc", ".emacs", ".emacs.d", ".config/nvim", ".tmux.conf", ".screenrc", ".xinitrc", ".xprofile", ".xsession"),
)

# Variables by which package managers and compilers find their caches, and the folder each gets in Hermes' own.
CACHES = {
    "XDG_CACHE_HOME": "xdg",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "UV_TOOL_DIR": "uv-tools",
    "npm_config_cache": "npm",
    "npm_config_store_dir": "pnpm",
    "YARN_CACHE_FOLDER": "yarn",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "DENO_DIR": "deno",
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
    "CARGO_HOME": "cargo",
    "GRADLE_USER_HOME": "gradle",
    "COMPOSER_CACHE_DIR": "composer",
    "NUGET_PACKAGES": "nuget",
    "PUB_CACHE": "pub",
    "CCACHE_DIR": "ccache",
    "SCCACHE_DIR": "sccache",
    "PRE_COMMIT_HOME": "pre-commit",
    "CONAN_HOME": "conan",
    "POETRY_CACHE_DIR": "poetry",
}

# They lead past the session's own network to a proxy, and through it to every host.
PROXY_VARIABLES = (
    *("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"),
    *("NO_PROXY", "no_proxy"),
)
