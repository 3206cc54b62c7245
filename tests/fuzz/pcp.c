/* pcp - answers of a router by PCP and NAT-PMP: what is read of them has its bounds. */
#include "net/pcp.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes input = bytes_of(data, size);
    struct pcp_wish wish = {.protocol = PCP_UDP, .own = address_ipv4(10, 7, 0, 2, 7070), .lifetime_s = 3600};
    struct pcp_answer answer;
    memcpy(wish.nonce, "nonce nonce ", sizeof wish.nonce);
    if (pcp_read(input, &wish, &answer) == PCP_ANSWER) {
        ASSERT(answer.lifetime_s <= PCP_LIFETIME_S_MAX);
        ASSERT(answer.result != 0 || (answer.outer.port > 0 && answer.lifetime_s > 0));
        ASSERT(pcp_result_text(answer.result)[0] != '\0');
    }
    if (natpmp_read_address(input, &answer)) {
        ASSERT(answer.result != 0 || (address_is_ipv4(&answer.outer) && answer.outer.port == 0));
        ASSERT(natpmp_result_text(answer.result)[0] != '\0');
    }
    if (natpmp_read_port(input, &wish, &answer)) {
        ASSERT(answer.lifetime_s <= PCP_LIFETIME_S_MAX);
        ASSERT(answer.result != 0 || (answer.outer.port > 0 && answer.lifetime_s > 0));
    }
    return 0;
}
