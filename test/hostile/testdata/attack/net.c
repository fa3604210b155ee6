// Attempts to reach the host and what is behind it. A connection says a word that
// the host listens for.
#include "attack.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char word[] = "hostile\n";

static long say(int fd, struct sockaddr *to, socklen_t size) {
	struct timeval t = {5, 0};
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
	if (connect(fd, to, size) < 0) return -1;
	if (send(fd, word, sizeof word - 1, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET) return -1;
	return 0; // it was accepted, if it was closed at once too
}

static long unix_to(const char *path, int kind, int abstract) {
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, kind, 0);
	size_t n = strlen(path);
	if (fd < 0) return -1;
	if (n + 1 >= sizeof a.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(a.sun_path + abstract, path, n);
	return say(fd, (struct sockaddr *)&a, offsetof(struct sockaddr_un, sun_path) + n + 1); // with the byte before an abstract name, or behind a path
}
static long unix_abstract(char *name) { return unix_to(name, SOCK_STREAM, 1); }
static long unix_path(char *path) { return unix_to(path, SOCK_STREAM, 0); }

// ADDRESS/PORT
static long inet_to(char *where, int kind, int protocol) {
	char host[64];
	char *slash = strchr(where, '/');
	int port = slash ? atoi(slash + 1) : 9;
	snprintf(host, sizeof host, "%.*s", (int)(slash ? slash - where : (long)strlen(where)), where);
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int six = strchr(host, ':') != NULL;
	if (inet_pton(six ? AF_INET6 : AF_INET, host, six ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) != 1) return -1;
	int fd = socket(six ? AF_INET6 : AF_INET, kind, protocol);
	if (fd < 0) return -1;
	return six ? say(fd, (struct sockaddr *)&v6, sizeof v6) : say(fd, (struct sockaddr *)&v4, sizeof v4);
}
static long tcp(char *where) { return inet_to(where, SOCK_STREAM, 0); }
static long mptcp(char *where) { return inet_to(where, SOCK_STREAM, 262); }
static long udp(char *where) { return inet_to(where, SOCK_DGRAM, 0); }
static long udplite(char *where) { return inet_to(where, SOCK_DGRAM, 136); }

static void each(int argc, char **argv, probe p) {
	char name[64];
	for (int i = 0; i < argc; i++) attempt(label(argv[i], name, sizeof name), p, value(argv[i]));
}
static void verb_abstract(int argc, char **argv) { each(argc, argv, unix_abstract); }
static void verb_unix(int argc, char **argv) { each(argc, argv, unix_path); }
static void verb_tcp(int argc, char **argv) { each(argc, argv, tcp); }
static void verb_mptcp(int argc, char **argv) { each(argc, argv, mptcp); }
static void verb_udp(int argc, char **argv) { each(argc, argv, udp); }
static void verb_udplite(int argc, char **argv) { each(argc, argv, udplite); }

// dns ADDRESS/PORT...: a question whose name carries a secret.
static char *secret;
static long ask(char *where) {
	unsigned char q[512] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
	char host[64];
	size_t n = 12, len = strlen(secret);
	char *slash = strchr(where, '/');
	if (len > 60 || !slash) return -1;
	q[n++] = len;
	memcpy(q + n, secret, len);
	n += len;
	memcpy(q + n, "\x07invalid\x00\x00\x01\x00\x01", 13);
	n += 13;
	snprintf(host, sizeof host, "%.*s", (int)(slash - where), where);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(slash + 1))};
	inet_pton(AF_INET, host, &to.sin_addr);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	return fd < 0 ? -1 : sendto(fd, q, n, 0, (struct sockaddr *)&to, sizeof to);
}
static void verb_dns(int argc, char **argv) {
	if (argc < 2) return broken("dns", "arguments");
	secret = argv[0];
	each(argc - 1, argv + 1, ask);
}

// families: sockets that a script has no need of. FAMILY:TYPE:PROTOCOL
static long family(char *what) {
	int f, t, p;
	if (sscanf(what, "%d:%d:%d", &f, &t, &p) != 3) return -1;
	return socket(f, t, p);
}
static void verb_families(int argc, char **argv) { each(argc, argv, family); }

// interfaces: what is there beside loopback.
static void verb_interfaces(int argc, char **argv) {
	struct if_nameindex *all = if_nameindex();
	int others = 0;
	for (struct if_nameindex *i = all; i && i->if_index; i++) others += strcmp(i->if_name, "lo") != 0;
	if (others) return escaped("interfaces");
	held("interfaces", all ? "lo-only" : strerrorname_np(errno));
}

// proxy ADDRESS/PORT TARGET: what a proxy answers to a request for TARGET.
static void verb_proxy(int argc, char **argv) {
	if (argc < 2) return broken("proxy", "arguments");
	char text[512], host[64];
	char *slash = strchr(argv[0], '/');
	if (!slash) return broken("proxy", "address");
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(slash + 1))};
	snprintf(host, sizeof host, "%.*s", (int)(slash - argv[0]), argv[0]);
	inet_pton(AF_INET, host, &to.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return held("proxy", strerrorname_np(errno));
	dprintf(fd, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[1], argv[1]);
	ssize_t n = read(fd, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = 0;
	printf("SEEN %s\n", text);
	if (n > 0) return escaped("proxy");
	held("proxy", "closed");
}

const struct verb_row net_verbs[] = {
	{"abstract", verb_abstract}, {"unix", verb_unix}, {"tcp", verb_tcp}, {"mptcp", verb_mptcp}, {"udp", verb_udp}, {"udplite", verb_udplite},
	{"dns", verb_dns}, {"families", verb_families}, {"interfaces", verb_interfaces}, {"proxy", verb_proxy}, {NULL, NULL},
};
