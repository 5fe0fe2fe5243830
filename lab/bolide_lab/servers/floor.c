/* The kernel's share of a plain HTTP/1.1 exchange: one thread, epoll, and for each
 * readable event one read() and one write() of a fixed response of 1192 bytes.
 * Nothing is parsed, so no server can be cheaper.
 *
 *   floor PORT
 */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RESPONSE_SIZE = 1192, EVENTS = 256 };

static char response[RESPONSE_SIZE];

/* A head that says how long the rest is, filled up to RESPONSE_SIZE. */
static void make_response(void) {
    int body = RESPONSE_SIZE, head = 0;
    do {
        body = RESPONSE_SIZE - head;
        head = snprintf(response, sizeof response,
                        "HTTP/1.1 200 OK\r\nServer: floor\r\nContent-Type: text/html\r\n"
                        "Content-Length: %d\r\nConnection: keep-alive\r\n\r\n", body);
    } while (head + body != RESPONSE_SIZE);
    memset(response + head, 'x', body);
}

static int listen_on(int port) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, 4096)) {
        perror("floor: bind");
        exit(1);
    }
    return fd;
}

static void accept_all(int epoll, int listener) {
    int one = 1, fd;
    while ((fd = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = fd };
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

int main(int argc, char **argv) {
    int listener = listen_on(argc > 1 ? atoi(argv[1]) : 8080), epoll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.fd = listener }, events[EVENTS];
    static char request[16384];
    make_response();
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                accept_all(epoll, listener);
            else if (read(fd, request, sizeof request) <= 0 ||
                     write(fd, response, RESPONSE_SIZE) != RESPONSE_SIZE)
                close(fd);
        }
    }
}
