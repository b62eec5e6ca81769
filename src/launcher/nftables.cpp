#include "launcher/nftables.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>

namespace sandy::launcher {
namespace {

constexpr const char* kTable = "sandy";
constexpr uint16_t kSubsystem = NFNL_SUBSYS_NFTABLES << 8;

// A rule, expression by expression. Registers: 1 for what is compared, and then for an address; 2 for a port.
class Rule {
 public:
  Rule(NetlinkBatch& batch, const char* purpose, const char* chain) : batch_(batch) {
    const nfgenmsg header{NFPROTO_INET, NFNETLINK_V0, 0};
    batch_.begin(purpose, kSubsystem | NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, header);
    batch_.text(NFTA_RULE_TABLE, kTable);
    batch_.text(NFTA_RULE_CHAIN, chain);
    expressions_ = batch_.open(NFTA_RULE_EXPRESSIONS);
  }
  ~Rule() { batch_.close(expressions_); }
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  Rule& meta_is(uint32_t key, uint8_t value) {
    begin("meta");
    batch_.network_number(NFTA_META_DREG, NFT_REG_1);
    batch_.network_number(NFTA_META_KEY, key);
    end();
    return is(&value, sizeof value);
  }

  Rule& payload_is(uint32_t base, uint32_t offset, const void* value, std::size_t size) {
    begin("payload");
    batch_.network_number(NFTA_PAYLOAD_DREG, NFT_REG_1);
    batch_.network_number(NFTA_PAYLOAD_BASE, base);
    batch_.network_number(NFTA_PAYLOAD_OFFSET, offset);
    batch_.network_number(NFTA_PAYLOAD_LEN, static_cast<uint32_t>(size));
    end();
    return is(value, size);
  }

  // The first `size` bytes of the destination: a prefix of whole bytes.
  Rule& destination_is(const in_addr& address, std::size_t size = sizeof(in_addr)) {
    return meta_is(NFT_META_NFPROTO, NFPROTO_IPV4).payload_is(NFT_PAYLOAD_NETWORK_HEADER, 16, &address, size);
  }
  Rule& destination_is(const in6_addr& address, std::size_t size = sizeof(in6_addr)) {
    return meta_is(NFT_META_NFPROTO, NFPROTO_IPV6).payload_is(NFT_PAYLOAD_NETWORK_HEADER, 24, &address, size);
  }

  Rule& protocol_is(uint8_t protocol) { return meta_is(NFT_META_L4PROTO, protocol); }

  Rule& port_is(uint16_t port) {
    const uint16_t value = htons(port);
    return payload_is(NFT_PAYLOAD_TRANSPORT_HEADER, 2, &value, sizeof value);
  }

  void accept() {
    begin("immediate");
    batch_.network_number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    const auto data = batch_.open(NFTA_IMMEDIATE_DATA), verdict = batch_.open(NFTA_DATA_VERDICT);
    batch_.network_number(NFTA_VERDICT_CODE, NF_ACCEPT);
    batch_.close(verdict);
    batch_.close(data);
    end();
  }

  void divert_to(uint32_t family, const void* address, std::size_t size, uint16_t port) {
    load(NFT_REG_1, address, size);
    const uint16_t value = htons(port);
    load(NFT_REG_2, &value, sizeof value);
    begin("nat");
    batch_.network_number(NFTA_NAT_TYPE, NFT_NAT_DNAT);
    batch_.network_number(NFTA_NAT_FAMILY, family);
    batch_.network_number(NFTA_NAT_REG_ADDR_MIN, NFT_REG_1);
    batch_.network_number(NFTA_NAT_REG_PROTO_MIN, NFT_REG_2);
    end();
  }

 private:
  void begin(const char* name) {
    element_ = batch_.open(NFTA_LIST_ELEM);
    batch_.text(NFTA_EXPR_NAME, name);
    data_ = batch_.open(NFTA_EXPR_DATA);
  }
  void end() {
    batch_.close(data_);
    batch_.close(element_);
  }
  Rule& is(const void* value, std::size_t size) {
    begin("cmp");
    batch_.network_number(NFTA_CMP_SREG, NFT_REG_1);
    batch_.network_number(NFTA_CMP_OP, NFT_CMP_EQ);
    const auto data = batch_.open(NFTA_CMP_DATA);
    batch_.attribute(NFTA_DATA_VALUE, value, size);
    batch_.close(data);
    end();
    return *this;
  }
  void load(uint32_t target, const void* value, std::size_t size) {
    begin("immediate");
    batch_.network_number(NFTA_IMMEDIATE_DREG, target);
    const auto data = batch_.open(NFTA_IMMEDIATE_DATA);
    batch_.attribute(NFTA_DATA_VALUE, value, size);
    batch_.close(data);
    end();
  }

  NetlinkBatch& batch_;
  std::size_t expressions_ = 0, element_ = 0, data_ = 0;
};

void add_chain(NetlinkBatch& batch, const char* purpose, const char* name, const char* type, int32_t priority, uint32_t policy) {
  const nfgenmsg header{NFPROTO_INET, NFNETLINK_V0, 0};
  batch.begin(purpose, kSubsystem | NFT_MSG_NEWCHAIN, NLM_F_CREATE, header);
  batch.text(NFTA_CHAIN_TABLE, kTable);
  batch.text(NFTA_CHAIN_NAME, name);
  batch.text(NFTA_CHAIN_TYPE, type);
  const auto hook = batch.open(NFTA_CHAIN_HOOK);
  batch.network_number(NFTA_HOOK_HOOKNUM, NF_INET_LOCAL_OUT);
  batch.network_number(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(priority));
  batch.close(hook);
  batch.network_number(NFTA_CHAIN_POLICY, policy);
}

constexpr const char* kRule = "network: a rule of nftables";
constexpr const char* kNatRule = "network: a rule of nftables that diverts (dnat)";

}  // namespace

void add_rules(NetlinkBatch& batch, const Addresses& addresses) {
  const nfgenmsg frame{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)}, inet{NFPROTO_INET, NFNETLINK_V0, 0};
  const in_addr loopback4{htonl(INADDR_LOOPBACK)};
  constexpr in6_addr loopback6 = IN6ADDR_LOOPBACK_INIT;
  const char* const divert = "divert";
  const char* const refuse = "refuse";

  batch.begin("network: nftables", NFNL_MSG_BATCH_BEGIN, 0, frame);
  batch.begin("network: a table of nftables", kSubsystem | NFT_MSG_NEWTABLE, NLM_F_CREATE, inet);
  batch.text(NFTA_TABLE_NAME, kTable);
  add_chain(batch, "network: a nat chain of nftables", divert, "nat", -100, NF_ACCEPT);
  add_chain(batch, "network: a filter chain of nftables", refuse, "filter", 0, NF_DROP);

  Rule(batch, kRule, divert).destination_is(loopback4, 1).accept();
  Rule(batch, kRule, divert).destination_is(addresses.own4).accept();
  Rule(batch, kNatRule, divert).meta_is(NFT_META_NFPROTO, NFPROTO_IPV4).protocol_is(IPPROTO_TCP).divert_to(NFPROTO_IPV4, &addresses.gateway4, 4, kTcpPort);
  Rule(batch, kNatRule, divert)
      .meta_is(NFT_META_NFPROTO, NFPROTO_IPV4)
      .protocol_is(IPPROTO_UDP)
      .port_is(53)
      .divert_to(NFPROTO_IPV4, &addresses.gateway4, 4, kDnsPort);
  Rule(batch, kRule, refuse).destination_is(loopback4, 1).accept();
  Rule(batch, kRule, refuse).destination_is(addresses.own4).accept();
  Rule(batch, kRule, refuse).destination_is(addresses.gateway4).accept();
  if (addresses.v6) {
    Rule(batch, kRule, divert).destination_is(loopback6).accept();
    Rule(batch, kRule, divert).destination_is(addresses.own6).accept();
    Rule(batch, kNatRule, divert).meta_is(NFT_META_NFPROTO, NFPROTO_IPV6).protocol_is(IPPROTO_TCP).divert_to(NFPROTO_IPV6, &addresses.gateway6, 16, kTcpPort);
    Rule(batch, kNatRule, divert)
        .meta_is(NFT_META_NFPROTO, NFPROTO_IPV6)
        .protocol_is(IPPROTO_UDP)
        .port_is(53)
        .divert_to(NFPROTO_IPV6, &addresses.gateway6, 16, kDnsPort);
    Rule(batch, kRule, refuse).destination_is(loopback6).accept();
    Rule(batch, kRule, refuse).destination_is(addresses.own6).accept();
    Rule(batch, kRule, refuse).destination_is(addresses.gateway6).accept();
  }
  batch.begin("network: nftables", NFNL_MSG_BATCH_END, 0, frame);
}

}  // namespace sandy::launcher
