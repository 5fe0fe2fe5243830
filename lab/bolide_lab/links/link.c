/* Owns: a link between two network namespaces of its own, for kernels without netem.
 *
 * One process makes both namespaces, opens a TUN device in each and carries packets over. Each
 * direction has a rate (a virtual clock), a drop-tail queue that holds N packets including the one
 * on the wire, a delay behind the queue, and random loss before it. Namespaces, devices and
 * addresses live as long as this process, and it lives as long as its standard input is open:
 * however the parent ends, nothing is left behind.
 *
 *   read -> loss? -> queue full? -> [ waiting ... on the wire ] -> [ delay line ] -> write
 *                                   ^queue_head     ^depart        ^line_head  ^arrive
 *
 * Easiest to break: line_head <= queue_head <= tail; a packet leaves the queue before the line.
 *
 * link RATE_TO_CLIENT_MBIT RATE_TO_SERVER_MBIT DELAY_US QUEUE_PACKETS LOSS_PERCENT SEED MTU
 * Says one JSON line when ready, one for each line it reads, and a last one at the end.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 65536u /* waiting and delayed packets of one direction */
#define ETHERNET 14u /* netem counts these bytes of each packet as well */
#define NEVER UINT64_MAX

struct packet {
    uint64_t depart_ns, arrive_ns;
    uint32_t bytes;
    uint8_t *data;
};

struct direction {
    const char *name;
    int from, to;
    double ns_per_byte;
    uint64_t wire_free_ns;
    struct packet slot[SLOTS];
    uint32_t tail, queue_head, line_head;
    uint64_t packets, bytes, dropped_queue, lost_random, late_us_max, late_packets;
    uint32_t queue_packets_max;
};

static struct direction directions[2];
static uint64_t delay_ns, chance;
static double loss;
static uint32_t queue_limit, mtu;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* SplitMix64: the same seed loses the same packets. */
static double random_unit(void) {
    uint64_t z = (chance += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static void die(const char *what) {
    fprintf(stderr, "link: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_setting(const char *path, const char *value) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, value, strlen(value)) < 0) { /* a kernel without it */ }
        close(fd);
    }
}

static void configure(int fd, struct ifreq *request, unsigned long what, const char *name) {
    if (ioctl(fd, what, request)) die(name);
}

static void set_address(struct ifreq *request, const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    inet_pton(AF_INET, text, &address.sin_addr);
    memcpy(&request->ifr_addr, &address, sizeof address);
}

/* A new namespace with a TUN device; *space is a file that names the namespace. */
static int open_end(int *space, const char *address, const char *peer) {
    if (unshare(CLONE_NEWNET)) die("a network namespace needs root");
    *space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    write_setting("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0) die("/dev/net/tun");
    struct ifreq request = {0};
    strcpy(request.ifr_name, "link0");
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    configure(tun, &request, TUNSETIFF, "TUNSETIFF");
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    set_address(&request, address);
    configure(fd, &request, SIOCSIFADDR, "address");
    set_address(&request, peer);
    configure(fd, &request, SIOCSIFDSTADDR, "peer address");
    request.ifr_mtu = (int)mtu;
    configure(fd, &request, SIOCSIFMTU, "mtu");
    /* The kernel's own queue before ours only bridges the time until we read. */
    request.ifr_qlen = 10000;
    configure(fd, &request, SIOCSIFTXQLEN, "txqueuelen");
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_POINTOPOINT;
    configure(fd, &request, SIOCSIFFLAGS, "up");
    strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
    configure(fd, &request, SIOCSIFFLAGS, "lo");
    close(fd);
    return tun;
}

static void leave_queue(struct direction *d, uint64_t now) {
    while (d->queue_head != d->tail && d->slot[d->queue_head % SLOTS].depart_ns <= now)
        d->queue_head++;
}

/* Takes what is there, at most one slot after the other until the device is empty. */
static void receive(struct direction *d) {
    for (int n = 0; n < 256; n++) {
        struct packet spare = {0}, *p = &d->slot[d->tail % SLOTS];
        int is_full = d->tail - d->line_head >= SLOTS - 1;
        if (is_full) p = &spare;
        if (!p->data && !(p->data = malloc(mtu))) die("memory");
        ssize_t got = read(d->from, p->data, mtu);
        if (got > 0) {
            uint64_t now = now_ns();
            leave_queue(d, now);
            uint32_t queued = d->tail - d->queue_head;
            d->packets++;
            if (loss > 0 && random_unit() < loss) {
                d->lost_random++;
            } else if (is_full || queued >= queue_limit) {
                d->dropped_queue++;
            } else {
                if (queued + 1 > d->queue_packets_max) d->queue_packets_max = queued + 1;
                uint64_t start = d->wire_free_ns > now ? d->wire_free_ns : now;
                p->bytes = (uint32_t)got;
                p->depart_ns = start + (uint64_t)((p->bytes + ETHERNET) * d->ns_per_byte);
                p->arrive_ns = p->depart_ns + delay_ns;
                d->wire_free_ns = p->depart_ns;
                d->bytes += p->bytes;
                d->tail++;
            }
        }
        if (p == &spare) free(spare.data);
        if (got <= 0) return;
    }
}

/* Hands over what has arrived; returns when the next packet will have. */
static uint64_t deliver(struct direction *d) {
    uint64_t now = now_ns();
    leave_queue(d, now);
    while (d->line_head != d->tail) {
        struct packet *p = &d->slot[d->line_head % SLOTS];
        if (p->arrive_ns > now) return p->arrive_ns;
        if (write(d->to, p->data, p->bytes) < 0 && errno == EAGAIN) return now + 100000;
        uint64_t late_us = (now - p->arrive_ns) / 1000;
        if (late_us > d->late_us_max) d->late_us_max = late_us;
        if (late_us > 1000) d->late_packets++;
        d->line_head++;
    }
    return NEVER;
}

static void say_counters(void) {
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("{\"cpu_s\": %.6f", (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
    for (int i = 0; i < 2; i++) {
        struct direction *d = &directions[i];
        printf(", \"%s\": {\"packets\": %llu, \"bytes\": %llu, \"dropped_queue\": %llu, "
               "\"lost_random\": %llu, \"queue_packets_max\": %u, \"late_us_max\": %llu, "
               "\"late_packets\": %llu}", d->name, (unsigned long long)d->packets,
               (unsigned long long)d->bytes, (unsigned long long)d->dropped_queue,
               (unsigned long long)d->lost_random, d->queue_packets_max,
               (unsigned long long)d->late_us_max, (unsigned long long)d->late_packets);
    }
    printf("}\n");
    fflush(stdout);
}

/* The parent asks with a line; its end is the end of this process. */
static int answer_parent(void) {
    char line[256];
    ssize_t got = read(0, line, sizeof line);
    if (got <= 0) return 0;
    for (ssize_t i = 0; i < got; i++)
        if (line[i] == '\n') say_counters();
    return 1;
}

static void carry(void) {
    for (;;) {
        uint64_t next = NEVER;
        for (int i = 0; i < 2; i++) {
            receive(&directions[i]);
            uint64_t at = deliver(&directions[i]);
            if (at < next) next = at;
        }
        struct pollfd ready[3] = {{directions[0].from, POLLIN, 0},
                                  {directions[1].from, POLLIN, 0}, {0, POLLIN, 0}};
        uint64_t now = now_ns(), wait = next == NEVER ? 1000000000u : next > now ? next - now : 0;
        struct timespec timeout = {(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)};
        if (ppoll(ready, 3, &timeout, NULL) > 0 && ready[2].revents && !answer_parent()) return;
    }
}

int main(int count, char **words) {
    if (count != 8) {
        fprintf(stderr, "usage: link RATE_TO_CLIENT RATE_TO_SERVER DELAY_US QUEUE LOSS SEED MTU\n");
        return 2;
    }
    delay_ns = (uint64_t)(atof(words[3]) * 1000);
    queue_limit = (uint32_t)atoi(words[4]);
    loss = atof(words[5]) / 100;
    chance = strtoull(words[6], NULL, 10);
    mtu = (uint32_t)atoi(words[7]);
    int server_space, client_space;
    int server = open_end(&server_space, "10.77.0.1", "10.77.0.2");
    int client = open_end(&client_space, "10.77.0.2", "10.77.0.1");
    directions[0].name = "to_client", directions[1].name = "to_server";
    directions[0].from = directions[1].to = server;
    directions[1].from = directions[0].to = client;
    directions[0].ns_per_byte = 8000 / atof(words[1]);
    directions[1].ns_per_byte = 8000 / atof(words[2]);
    /* A late relay is another link; both calls may be refused, and lateness is counted. */
    struct sched_param priority = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &priority)) setpriority(PRIO_PROCESS, 0, -10);
    prctl(PR_SET_TIMERSLACK, 1000);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    printf("{\"pid\": %d, \"server_namespace\": %d, \"client_namespace\": %d}\n", (int)getpid(),
           server_space, client_space);
    fflush(stdout);
    carry();
    say_counters();
    return 0;
}
