/* IPv6 for the TCP driver, whose calls it replaces (-Dsocket=ip6_socket ...): the same program, with
 * the address [IP]:PORT in place of IP:PORT.
 */
#undef inet_aton
#undef socket
#undef bind
#undef connect
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static struct sockaddr_in6 at = {.sin6_family = AF_INET6};

/* Reads [IP]; the driver's own address keeps the port alone. */
int ip6_aton(const char *text, struct in_addr *unused)
{
    char words[INET6_ADDRSTRLEN] = "";
    size_t length = strlen(text);
    (void)unused;
    if (length < 2 || length - 2 >= sizeof words || text[0] != '[' || text[length - 1] != ']') return 0;
    memcpy(words, text + 1, length - 2);
    return inet_pton(AF_INET6, words, &at.sin6_addr) == 1;
}

int ip6_socket(int family, int type, int protocol)
{
    (void)family;
    return socket(AF_INET6, type, protocol);
}

static const struct sockaddr *with_port_of(const struct sockaddr *four)
{
    at.sin6_port = ((const struct sockaddr_in *)four)->sin_port;
    return (const struct sockaddr *)&at;
}

int ip6_bind(int sock, const struct sockaddr *address, socklen_t length)
{
    (void)length;
    return bind(sock, with_port_of(address), sizeof at);
}

int ip6_connect(int sock, const struct sockaddr *address, socklen_t length)
{
    (void)length;
    return connect(sock, with_port_of(address), sizeof at);
}
