"""Programs whose own words tell what they do: a table of effect, programs and words."""

import re
from typing import NamedTuple

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.run_state import Command
from hermes.tools.approval.word_patterns import plain

# effect: programs: expression over the words. It must start and end at a word; a word with blanks in it is text, and
# reads `_`; one that only running would tell reads `…`. `!` after the effect puts it on the floor.
_TABLE = r"""
infrastructure: terraform tofu terragrunt cdktf: --?destroy|destroy|force-unlock|taint|--?replace=\S+|--?auto-approve|state (?:rm|push)|workspace delete
infrastructure: aws gcloud az doctl linode-cli hcloud oci ibmcloud gsutil s3cmd mc openstack scw exo vultr-cli bq influx: (?:batch-)?(?:delete|terminate|destroy|purge|remove|deregister|disable|revoke|stop|wipe)(?:-\S*)?|rb|rm|del|nuke|drop|release-address|--delete\S*|erase|schedule-key-deletion|rsync (?:.* )?-\w*d\w*
infrastructure: aws gcloud az doctl kubectl oc heroku fly flyctl eksctl nomad docker: (?:.* )?\S*(?:desired-count|desired-capacity|max-size|replicas|num-nodes|scale)[ =]+(?:\S+=)?0
infrastructure: aws: .*"?Action"?:"?DELETE.*
infrastructure: gh glab: workflow disable|repo (?:archive|rename|transfer)|cache delete|ssh-key add
open_permissions: kubectl oc: create (?:cluster)?rolebinding .*cluster-admin.*
open_permissions: aws gcloud az gsutil: authorize-security-group-\w+|attach-\w+-policy|put-\w+-policy|create-access-key|put-(?:bucket|object)-acl|(?:set|add)-iam-policy\S*|role assignment create|iam ch|acl (?:ch|set)
infrastructure: helm helmfile pulumi cdk heroku fly flyctl vagrant virsh VBoxManage lxc incus multipass eksctl kops minikube kind k3d serverless sls sam vercel netlify railway gh glab hub wrangler supabase firebase vault consul nomad qm pct argocd flux velero ctr crictl oc rancher tkn istioctl linkerd cf ansible-galaxy spin render: (?:\S+:)?(?:destroy|delete|uninstall|purge|remove|rm|nuke|down|drop|teardown|undeploy|undefine|unregistervm|rollback)(?::\S*)?|pg:reset|job stop|secrets disable|kv destroy|operator raft remove-peer|api (?:.* )?(?:-X|--method)[ =]?DELETE
infrastructure: helm: (?:un|del) \S+
infrastructure: kubeadm: reset
infrastructure: kubectl oc: \A(?=.*finalizers)(?:.* )?patch
infrastructure: ibmcloud: \S+-delete
inline_code: tar gtar bsdtar: --checkpoint-action[ =]exec=\S*
inline_code: snap flatpak: run (?:.* )?--(?:shell|command)(?:=\S+)?
cron_write: systemd-run: --on-\S+
system_config: tailscale wg-quick: down
remote_code: npx bunx pnpx uvx pipx: \A(?:run )?(?:(?:--from|--spec|-p|--package)[ =])?(?:-\S+ )*(?:git\+\S+|https?://\S+|(?:github|gitlab|bitbucket|gist):\S+)
remote_code: uv pnpm yarn bun nix mise: \A(?:tool )?(?:run|dlx|x|exec|shell|develop) (?:(?:--from|--spec)[ =])?(?:-\S+ )*(?:git\+\S+|https?://\S+|(?:github|gitlab|bitbucket|gist):\S+)
remote_code: deno: \Ahttps?://\S+
infrastructure: dvc: \A(?!.*--dry)gc|destroy
infrastructure: rclone: deletefile|rmdirs
infrastructure: kamal: (?:app |accessory |proxy |registry )?remove|rollback
infrastructure: wget: --method[ =]?(?i:delete)
infrastructure: aws gcloud gsutil: put-bucket-lifecycle\S*|lifecycle set|--lifecycle-file\S*
open_permissions: gh glab: repo edit (?:.* )?--visibility[ =]public(?: .*)?
open_permissions: aws gcloud az gsutil: (?:put|delete)-public-access-block|--allow-blob-public-access[ =]true
destroy_data: mogrify: \A(?!.*(?:-path |--dest|-version|-list))(?:.* )?\S*\*\S*
destroy_data: exiftool: \A(?=.*-overwrite_original)(?:.* )?(?:\S*\*\S*|-r)
destroy_data: gpg gpg2 age: (?:-o|--output)[ =](\S+) (?:.* )?\1
destroy_data: openssl: (?:.* )?-in (\S+) (?:.* )?-out \1
database_destroy: atlas: schema (?:clean|apply (?:.* )?--auto-approve)
database_destroy: dbmate migrate: (?:.* )?(?:drop|down|rollback)
infrastructure: k3s-uninstall.sh k3s-agent-uninstall.sh rke2-uninstall.sh: .*
infrastructure: s5cmd: rm|rb
infrastructure: vault: operator (?:seal|step-down)
infrastructure: crictl: \A(?=.*(?:--prune|--all| -[af]))(?:.* )?rmi?
infrastructure: k3s microk8s kubectl oc: patch .*--type[ =]json .*remove
infrastructure: restic borg duplicity kopia rdiff-backup: forget|prune|delete|remove-\S+|snapshot delete|--remove-older-than
infrastructure: etcdctl zkCli.sh kafka-topics kafka-topics.sh kafka-consumer-groups rabbitmqctl rabbitmqadmin nats: (?:--)?delete\S*|del|deleteall|rmr|purge\S*|reset|force_reset|stop\S*|shutdown
container_stop: podman nerdctl: system reset|pod (?:rm|stop|kill)|machine (?:rm|reset)
publish: npm pnpm yarn bun cargo gem poetry flit hatch uv vsce lerna: \A(?:--\S+ )*(?:npm )?(?:publish|unpublish|yank|deprecate|push)
publish: twine pod mvn dotnet: upload|trunk (?:push|delete)|deploy|nuget (?:push|delete)
database_destroy: rails rake artisan prisma sequelize sequelize-cli knex typeorm mix alembic flask goose diesel sqlx dotnet ef supabase doctrine: db:(?:drop|reset|purge|schema:load|wipe)\S*|migrate:(?:fresh|reset|refresh)|migrate reset|(?:db push )?--force-reset|(?:db )?downgrade base|(?:.* )?down-to 0|ecto\.(?:drop|reset)|schema:drop|database (?:drop|reset)|db reset|migrate:rollback --all
database_destroy: flyway liquibase django-admin manage.py migrate: (?:.* )?(?:clean|drop|drop-?[aA]ll|(?:sql)?flush|reset_db)(?: .*)?
database_destroy: mysqladmin: (?i:drop|shutdown)
database_destroy: dropdb dropuser pg_dropcluster: .*
database_destroy: pg_restore: -\w*c\w*|--clean
database_destroy: pg_ctl pg_ctlcluster: stop|restart|.* stop
disk_layout: lvremove vgremove pvremove lvreduce vgreduce resize2fs tune2fs badblocks debugfs: \A(?!-[lth]\Z|--test).+
disk_layout: zpool zfs btrfs diskutil cryptsetup mdadm dmsetup parted losetup: (?i:(?:subvolume )?(?:destroy|delete|remove(?:_all)?|erase|offline|rollback|reformat|mklabel|mktable|mkpart|resizepart|rm|labelclear)|destroyvolume|erase(?:disk|volume|optical)|zerodisk|secureerase|partitiondisk|luks(?:format|erase|killslot|removekey)|delete(?:container|volume)|--zero-superblock|--stop|-S)
disk_layout: pvcreate vgcreate ubiformat flash_erase flash_eraseall: (?!-h|--help).+
disk_layout: fdisk sfdisk cfdisk gdisk sgdisk cgdisk: \A(?!(?:.* )?(?:-[lpsdiJxhV]|--(?:list|print|dump|info|version|help))(?: |\Z)).+
disk_layout: wipefs: \A(?!(?:.* )?(?:-n|--no-act))(?:.* )?(?:-\w*[aof]\w*|--(?:all|offset|force)\S*)
disk_layout: blkdiscard: (?!-[hV]|--help|--version).+
disk_copy: dcfldd ddrescue: .+
system_config: visudo: \A(?!-\w*c|--check).*
open_permissions: chattr setfacl: .+
reverse_shell: socat: .*
exfiltration: mail mailx mutt sendmail: .*
disk_layout: fsck e2fsck: -[a-xz]*y[a-z]*
disk_layout: fsfreeze xfs_repair flashrom: -\w*[fLwE]|--(?:freeze|write|erase)
disk_layout: hdparm nvme sg_format sg_sanitize smartctl: (?i:\S*(?:erase|format|sanitize|trim-sector|write-sector|discard|delete-ns)\S*)
destroy_data: fallocate: -\w*[pcz]\w*|--(?:punch-hole|collapse-range|zero-range|dig-holes)
exhaustion: fallocate: -\w*l ?(?:\d{11,}|\d{2,}[GgTtPp]\w*|\d[TtPp]\w*|\S*…\S*)|--length[ =](?:\d{11,}|\d{2,}[GgTtPp]\w*|\S*…\S*)
exhaustion: hping3 hping nping ping ping6 t50 mz: --flood|-f|--faster|--rate[ =]\d{4,}
exhaustion: stress stress-ng slowloris: (?!--version|--help).+
mass_delete: hdfs hadoop: (?:dfs|fs) (?:.* )?-(?:rm\S*|expunge|truncate)
mass_delete: gio kioclient: trash|remove|delete
mass_delete: 7z 7za 7zz: -sdel
mass_delete: timeshift bleachbit: --delete\S*|-c|--clean
defence_off: iptables ip6tables iptables-nft ip6tables-nft iptables-legacy ip6tables-legacy xtables-multi xtables-nft-multi xtables-legacy-multi nft ebtables arptables ipset ipfw: -[FXDZ]\w*|--flu\w*|--delete(?:-chain)?|flush|delete|destroy|-P \w+ ACCEPT|--policy \w+ ACCEPT
defence_off: iptables-restore ip6tables-restore iptables-nft-restore iptables-legacy-restore: .*
defence_off: nft: -f|--file
defence_off: ufw: default allow(?: incoming)?|allow (?:in )?from (?:any|0\.0\.0\.0/0|::/0)(?! (?:to any )?port)|allow (?:1|0):6\d{4}\S*|allow proto \S+ from any to any(?! port)
defence_off: firewall-cmd: --(?:add-port|add-source-port)=[01]-6\d{4}\S*|--add-source=(?:0\.0\.0\.0/0|::/0)|--zone=trusted .*--(?:add|change)-\S+|--(?:add|change)-\S+ .*--zone=trusted|--add-rich-rule=\S*|--set-target=ACCEPT|--set-default-zone=trusted
defence_off: auditctl: -d
defence_off: semanage: permissive -a
defence_off: osqueryctl falconctl: stop|-d|unload
defence_off: xattr: -\w*[cd]\w* .*quarantine.*
defence_off: pfctl: -\w*[dF]\w*
system_config: iptables ip6tables iptables-nft iptables-legacy nft ebtables ipset: -[AIP]|--append|--insert|--policy|add|insert
defence_off: ufw firewall-cmd setenforce auditctl fail2ban-client apparmor_parser csrutil spctl socketfilterfw netsh: (?i:disable|clear|reset|stop|--panic-\w+|off|0|permissive|delete|--remove-\S*|flush|--set-default-zone=trusted|--master-disable|unban)|-D|-R|-e ?0
defence_off: aa-disable aa-teardown aa-complain: .*
defence_off: logrotate: -f|--force
defence_off: journalctl dmesg: --(?:vacuum|rotate|flush|clear)\S*|-\w*[Cc]
system_config: tc bpftool: .*(?:del|delete|add|replace|change|detach|attach|load|pin)(?: .*)?
system_config: ip: (?:.* )?(?:set|del|delete|flush|add|change|replace)(?: .*)?
system_config: ifconfig route nmcli netplan wpa_cli iw rfkill: (?:.* )?(?:down|up|del|delete|flush|add|modify|off|apply|block|disconnect)(?: .*)?
system_config: insmod rmmod modprobe kexec efibootmgr grub-install update-grub dpkg-reconfigure: \A(?!-[hVlva]+\Z|--(?:list|all)\Z).*
system_config: resolvectl: (?:dns|domain) \S+ \S+|revert \S+
system_config: hostnamectl timedatectl localectl: set-\S+|hostname \S+
system_config: swapoff setcap ldconfig chcon setsebool update-ca-certificates grubby authconfig: \A(?!-p\Z|-\w*p\b).*
system_config: date hwclock: -s|--set\S*|-w|--systohc
system_config: defaults dconf update-alternatives gsettings: write|delete|reset\S*|--set|--remove\S*|--install|load
system_config: sysctl: \S+=\S*|-[wp]|--write|--load\S*|--system
system_config: do-release-upgrade: .*
system_config: security: add-trusted-cert
system_config: reg bcdedit vssadmin wbadmin schtasks sc net: (?i:delete|add|/create|/delete|/set|/change|stop|import|user|localgroup)
open_permissions: xhost: \+\S*
open_permissions: icacls takeown cacls: (?i:/grant\S*|/setowner|/f)
accounts: userdel deluser groupdel delgroup useradd adduser usermod groupadd groupmod chpasswd gpasswd chage vipw chsh chfn dscl: .*
accounts: passwd: \A(?!-S|--status).*
user_files: ssh-copy-id ssh-import-id ssh-import-id-gh: .*
user_files: aws: configure (?:import|set \S*(?:key|token|secret|credential_process|role_arn)\S*)
user_files: npm pnpm yarn: config (?:set|delete|rm) (?:.* )?\S*(?:registry|auth|token|proxy|script-shell|prefix)\S*
user_files: pip: config (?:set|unset) \S*(?:index|host|proxy|find-links)\S*
user_files: gpg gpg2: --delete-\S+
user_files: security: delete-\S+|set-\S+
user_files: kubectl: config (?:delete-\S+|unset|set-credentials|set-cluster)
user_files: gh glab: auth logout
user_files: pass gopass: rm|generate -f|edit
service_control: service invoke-rc.d rc-service initctl rc-update chkconfig update-rc.d supervisorctl sv monit: \S+ …|stop|restart|disable|force-stop|delete|down|del|remove|off|shutdown
service_control: snap: stop|restart|disable
service_control: brew: services (?:stop|restart|kill)
service_control: s6-svc svc: -\w*[dxkt]\w*
service_control: pm2 forever: delete|kill|stop|restart|stopall
service_control: nginx: -s (?:stop|quit)
service_control: apachectl apache2ctl httpd catalina.sh: stop|restart|graceful-stop|-k (?:stop|restart|graceful-stop)
service_control: loginctl: (?:terminate|kill|disable|lock)-\S+
service_control: busctl dbus-send gdbus: \S*(?:StopUnit|RestartUnit|KillUnit|Terminate\w+|KillSession)
shutdown!: busctl dbus-send gdbus: \S*(?:PowerOff|Reboot|Halt|KExec|Hibernate|Suspend)
shutdown!: wsl: --shutdown|--unregister
shutdown!: loginctl: poweroff|reboot|halt|suspend|hibernate|kexec
shutdown!: shutdown reboot halt poweroff: \A(?!(?:.* )?(?:-\w*[cw]|--(?:help|version|show|wtmp-only))(?: |\Z)).*
format!: mkfs mke2fs mkswap mkdosfs mkntfs format.com mformat: \A(?!(?:.* )?(?:-h|-V|--help|--version|help)(?: |\Z)).+
cron_write: crontab: \A(?!(?:.* )?(?:-\w*l|--list)(?: |\Z)).*
own_runtime!: hermes hermes-agent hermes-acp: --yolo|config (?:set|edit|unset|reset|import)|approvals (?:revoke|add|allow|clear|set|grant)
own_runtime: hermes hermes-agent hermes-acp: \A(?:-[pm] \S+ |--(?:profile|model)[ =]\S+ |-\S+ )*(?:update|uninstall|setup|model|fallback)
own_runtime: hermes hermes-agent hermes-acp: gateway (?:stop|restart|run|start|uninstall|install)|profile (?:delete|remove|use|rename)|cron (?:add|remove|delete|edit|create)|plugins (?:install|enable|remove|uninstall|disable)|mcp (?:add|remove)|sessions (?:delete|prune)|tools (?:enable|disable)
shutdown!: init telinit: [06sS1]
service_control: launchctl: unload|bootout|remove|stop|kill|disable|kickstart
cron_write: launchctl: load|bootstrap|submit
mass_kill: killall5 slay xkill: .*
mass_kill: ipcrm: -a|--all\S*
mass_kill: tmux: kill-server
mass_kill: taskkill: (?i:/f|/im)
packages: brew: (?:uninstall|remove|rm) (?:.*--ignore-dependencies.*|.*…)
packages: pip pip3: uninstall (?:.* )?(?:pip|setuptools|wheel|hermes\S*|--break-system-packages|-r|…)
packages: uv pipx: (?:tool )?uninstall (?:.* )?hermes\S*
packages: apt apt-get dnf yum pacman zypper apk dpkg rpm aptitude: \A(?=.*…)(?:.* )?(?:remove|purge|erase|rm|del|-R\w*|-e|-P|-r)
packages: dpkg: --(?:set|clear)-selections
packages: xbps-remove swupd: base\S*|os-core
packages: nix-env: -e \*|--uninstall \*
packages: tasksel: remove .*
packages: snap: \Aremove (?:.* )?(?:core\d*|snapd)
packages: apt apt-get: (?:.* )?autoremove .*--purge|(?:.* )?--purge .*autoremove
packages: emerge: --unmerge|-\w*C\w*|--depclean
packages: flatpak snap port pkg: (?:uninstall|remove|delete) (?:.*)?(?:--all|--purge|-a|all)
packages: nix-collect-garbage guix: -d|--delete-\S+|gc .*
packages: aptitude: (?:purge|remove) (?:.* )?(?:~|/home/)\S+
git_history: hg: strip|rollback|(?:update|up|checkout|co) (?:.* )?(?:-C|--clean)|purge
git_history: svn: revert (?:.* )?-\w*R\w*|(?:delete|rm|remove) (?:.* )?\S+://\S+
git_history: jj: abandon|op (?:restore|abandon)|git push --delete \S+
exfiltration: ngrok cloudflared: (?:.* )?file://\S*
remote_code: certutil bitsadmin mshta regsvr32 rundll32 msiexec wmic: \S*(?:https?:|javascript:)\S*|(?:.* )\S*https?:\S*
remote_code: iex Invoke-Expression: .*(?i:iwr|irm|curl|wget|https?:|Invoke-|DownloadString).*
remote_code: pip uv npm pnpm yarn bun gem cargo rpm dnf yum zypper brew composer go luarocks: (?:.* )?(?:-U|-i|-ivh|install|add|i|get) (?:.* )?(?:git\+|--source[ =]|--git[ =])?http://(?!localhost|127\.)\S*
remote_code: pip uv: (?:pip )?install (?:.* )?(?:--(?:extra-)?index-url|-i|--find-links|-f)[ =]http://(?!localhost|127\.)\S*
own_runtime: gateway: run|stop|restart
own_runtime: launchctl: .*hermes\S*
prints: kubectl oc: get (?:.* )?secrets?(?:/\S+)?(?: .*)?
prints: pass gopass: show .*|[\w/-]+
prints: vault: read|kv get
prints: op bw lpass: read|get|item get|show
prints: aws: secretsmanager get-secret-value|ssm get-parameters?\S* .*--with-decryption
prints: gcloud: secrets versions access
prints: aws: configure export-credentials
prints: gpg gpg2: --export-secret\S*|--decrypt|-d
prints: security: find-\S+|dump-keychain|export
"""  # noqa: E501 - one line is one rule
_NOT_DONE = frozenset({"--help", "--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server"})
# Verbs that destroy in whatever tool has them; `remove` and `uninstall` are what one does to a dependency.
_DESTROYS = re.compile(
    r"(?i)(?:[\w.-]*[:.-])?(?:delete|destroy|purge|terminate|wipe|erase|nuke|teardown|undeploy|obliterate|decommission"
    r"|factory-reset|drop)(?:[-_:]\w+)*"
)
_MAX_VERB = 3
_TRIES = 64  # of an expression, from each word over all that follow, in one step


class ToolRule(NamedTuple):
    kind: str
    severity: Severity
    pattern: re.Pattern[str]


def _rules() -> dict[str, list[ToolRule]]:
    found: dict[str, list[ToolRule]] = {}
    for row in _TABLE.strip().splitlines():
        kind, programs, expression = row.split(": ", 2)
        severity = Severity.HARDLINE if kind.endswith("!") else Severity.ASK
        rule = ToolRule(kind.rstrip("!"), severity, re.compile(rf"(?:\A|(?<= ))(?:{expression})(?=[ =]|\Z)"))
        for program in programs.split():
            found.setdefault(program, []).append(rule)
    return found


RULES = _rules()


def judge_words(cmd: Command) -> bool:
    """Record what the table says of the command; whether it prints what somebody keeps secret."""
    if _is_not_done(cmd.args):
        return False
    text = _readable(cmd.args)
    cmd.run.budget.spend(len(text) * len(cmd.args) // _TRIES)
    prints = False
    for kind, severity, pattern in RULES[cmd.name]:
        if pattern.search(text) is None:
            continue
        if kind == "prints":
            prints = True
        else:
            cmd.add(kind, severity=severity)
    verb = next((arg for arg in cmd.args if arg[:1] != "-"), "") if cmd.name in _VERB_FIRST else "".join(cmd.args[:1])
    if UNKNOWN in verb:
        cmd.run.unknown(f"{cmd.name} is given a command that is only known when it runs")
    return prints


_VERB_FIRST = frozenset(
    words(
        "terraform tofu terragrunt helm pulumi kubectl oc apt apt-get dnf yum zypper apk brew npm pnpm yarn pip gh "
        "glab aws gcloud az heroku fly ufw launchctl supervisorctl pm2 zpool zfs vagrant virsh snap flatpak cargo gem "
        "poetry vault"
    )
)


# A cloud's own command line: one of its leading words must be a verb that looks, makes or changes one thing.
CLOUDS = frozenset(words("aws gcloud az oci ibmcloud doctl linode-cli hcloud openstack scw exo vultr-cli"))
_CLOUD_VERBS = re.compile(
    r"(?:\w+:)?(?:batch-)?(?:describe|list|ls|get|show|view|head|lookup|search|filter|test|validate|estimate|query|scan|start|create|run|put"
    r"|invoke|deploy|update|tag|set|add|enable|login|logout|configure|config|cp|mv|sync|mb|presign|tail|wait|help|info|version|completion|print"
    r"|export|status|logs?|ssh|scp|connect|import|generate|init|auth|account|assume|decode|encrypt|decrypt|sign|verify|apply|build|submit"
    r"|upload|download|copy|install|up|use|current|check|diff|plan|read|write|send|publish|register|attach|associate|allocate|modify|restore"
    r"|resize|scale|url|token|open|cat|du|stat|restart|redeploy|promote|simulate|select|subscribe|receive|poll|count|monitor|watch|dump"
    r"|rename|move|tunnel|proxy|exec|activate|ps|pull|push|fetch|save|interactive|components|projects|regions|browse|admin|request|make)(?:-\S*)?"
)


def judge_cloud(cmd: Command) -> None:
    """A verb that is not on the list asks: a cloud has thousands, and half of them cannot be undone."""
    leading = [word for word in cmd.args if not word.startswith("-")][:6]
    if len(leading) > 1 and not _is_not_done(cmd.args) and not any(map(_CLOUD_VERBS.fullmatch, leading)):
        cmd.run.unknown(f"{cmd.name} is given a verb that nobody here knows ({' '.join(leading[:3])})")


def judge_verb(cmd: Command) -> None:
    """A tool without a rule: a verb among its first words may still say that it destroys."""
    if _is_not_done(cmd.args):
        return
    leading = [word for word in cmd.args if not word.startswith("-")][:_MAX_VERB]
    if any(_DESTROYS.fullmatch(word) for word in leading):
        cmd.add("infrastructure")


def _is_not_done(args: list[str]) -> bool:
    """Help, a rehearsal, or the version; `--version 1.2` names one to work on."""
    return not _NOT_DONE.isdisjoint(args) or args[-1:] == ["--version"]


def _readable(args: list[str]) -> str:
    return plain(" ".join("_" if " " in word or "\n" in word else word for word in args)).replace(UNKNOWN, "…")
