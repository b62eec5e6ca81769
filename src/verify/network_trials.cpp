#include <memory>

#include "base/error.h"
#include "base/gateway.h"
#include "policy/network_rule.h"
#include "verify/explain.h"
#include "verify/trial.h"

namespace sandy::verify {
namespace {

std::string this_machine() { return std::string(policy::kThisMachine); }

using Words = std::vector<std::string>;

constexpr char kDnsPort[] = "53", kHttpPort[] = "3128", kSocksPort[] = "1080";
// Nobody listens there who would answer outside; a server that is asked all the same is asked for nothing.
constexpr char kPublicAddress[] = "8.8.8.8", kMetadataAddress[] = "169.254.169.254";
constexpr char kBriefly[] = "50";  // ms: nobody answers who only counts

class Builder {
 public:
  explicit Builder(Setting& setting) : s_(setting) {}

  std::vector<Trial> without_a_list() {
    arrives("tcp-loopback", {3, 17}, "connect to a server on this machine's loopback", "tcp", s_.canaries.tcp4);
    arrives("tcp6-loopback", {3, 17}, "connect to a server on its IPv6 loopback", "tcp", s_.canaries.tcp6);
    arrives("tcp-host", {3, 17}, "connect to a server at this machine's address", "tcp", s_.canaries.tcp_host);
    arrives("udp-loopback", {8}, "send UDP to this machine's loopback", "udp", s_.canaries.udp4);
    arrives("udp-host", {8}, "send UDP to this machine's address", "udp", s_.canaries.udp_host);
    return std::move(out_);
  }

  std::vector<Trial> past_a_list(const Control& control) {
    control_ = control;
    const auto port = s_.canaries.tcp4 ? std::to_string(s_.canaries.tcp4->port()) : "9";
    const auto allowed = s_.canaries.allowed ? std::to_string(s_.canaries.allowed->port()) : "9";
    const std::string name = "verify-" + s_.nonce + ".example.com";

    refused("list-connect", {5, 12}, "reach a name that isn't listed, by the HTTP proxy (CONNECT)", {"connect", kGatewayIpv4, kHttpPort, name + ":443"}, name + ":443", name, 443);
    refused("list-http", {4}, "the same by plain HTTP", {"get", kGatewayIpv4, kHttpPort, "http://" + name + "/", name}, name + ":80", name, 80);
    to_canary("list-host-header", {4}, "the same with a listed name in the header",
              {"get", kGatewayIpv4, kHttpPort, "http://" + name + "/", this_machine() + ":" + allowed}, s_.canaries.allowed);
    refused("list-socks", {5}, "reach a name that isn't listed, by the SOCKS5 proxy", {"socks", kGatewayIpv4, kSocksPort, name, "443"}, name + ":443", name, 443);
    to_canary("list-nul", {1}, "reach a listed name with a NUL and another name behind it", {"socks", kGatewayIpv4, kSocksPort, this_machine() + "%00." + name, allowed},
              s_.canaries.allowed);
    to_canary("list-newline", {1}, "the same with a new line, by CONNECT", {"connect", kGatewayIpv4, kHttpPort, this_machine() + "%0d%0a." + name + ":" + allowed},
              s_.canaries.allowed);
    to_canary("list-port", {7}, "reach another port of a listed name", {"socks", kGatewayIpv4, kSocksPort, this_machine(), port}, s_.canaries.tcp4);
    to_canary("list-loopback", {12, 17}, "reach this machine's loopback by the proxy, in any spelling",
              {"connect", kGatewayIpv4, kHttpPort, "127.0.0.1:" + port, "localhost:" + port, "0.0.0.0:" + port, "[::ffff:127.0.0.1]:" + port, "2130706433:" + port, "0x7f000001:" + port,
               "127.1:" + port, "[::1]:" + port, "017700000001:" + port},
              s_.canaries.tcp4);
    if (s_.canaries.tcp_host) {
      to_canary("list-host", {3, 17}, "reach this machine's address directly", {"tcp", s_.canaries.tcp_host->address(), std::to_string(s_.canaries.tcp_host->port()), "x"}, s_.canaries.tcp_host);
      to_canary("list-udp", {8}, "send UDP past the list", {"udp", s_.canaries.udp_host->address(), std::to_string(s_.canaries.udp_host->port()), "x"}, s_.canaries.udp_host);
    }
    const auto metadata = std::string(kMetadataAddress) + ":80";
    refused("list-metadata", {10, 17}, "reach a cloud's metadata address", {"tcp", kMetadataAddress, "80", "x"}, metadata, kMetadataAddress, 80);
    const auto address = std::string(kPublicAddress) + ":443";
    refused("list-address", {3}, "reach an address that isn't listed directly", {"tcp", kPublicAddress, "443", "x"}, address, kPublicAddress, 443);
    // Any name leads to the proxy's answers, and one that isn't listed to none: no packet carries it away.
    Trial& tunnel = add("dns-tunnel", {9}, "send data away in a name that is looked up", {"dns", kGatewayIpv4, kDnsPort, name});
    tunnel.look = [policy = &s_.policy, name](const wire::Json& /*end*/, Inside& inside) {
      // Whoever answers for a listed name, and answers that there is none, was asked all the same.
      if (inside.report.word != AttemptReport::Word::refused || resolved_by(*policy, name).empty()) return;
      inside.arrived = true;
      inside.seen = "the name may be asked for, and there was none";
    };
    tunnel.allowed_by = [policy = &s_.policy, name] { return resolved_by(*policy, name); };
    escapes(name);
    return std::move(out_);
  }

 private:
  Trial& add(std::string name, std::vector<int> rows, std::string attack, Words words) {
    out_.push_back({{std::move(name), AttackClass::network, std::move(rows), std::move(attack)}, control_, std::move(words), Proof::report, {}, {}, {}});
    return out_.back();
  }

  void arrives(std::string name, std::vector<int> rows, std::string attack, const char* kind, Canary<CanaryListener>& canary) {
    if (!canary) {
      control_ = {false, canary.error().text()};
      add(std::move(name), std::move(rows), std::move(attack), {kind, "127.0.0.1", "9", "x"}).proof = Proof::arrival;
      return;
    }
    const auto port = std::to_string(canary->port());
    (void)s_.outside.attempt({kind, canary->address(), port, "x", kBriefly});
    control_ = {canary->visited(), "it does not arrive outside a sandbox either"};
    to_canary(std::move(name), std::move(rows), std::move(attack), {kind, canary->address(), port, "x"}, canary);
  }

  // What whoever listens sees decides: a proxy in between takes every connection.
  void to_canary(std::string name, std::vector<int> rows, std::string attack, Words words, Canary<CanaryListener>& canary) {
    Trial& trial = add(std::move(name), std::move(rows), std::move(attack), std::move(words));
    if (!canary) {
      trial.control = {false, canary.error().text()};
      return;
    }
    trial.proof = Proof::arrival;
    trial.arrived = [&canary] { return canary->visited(); };
    trial.allowed_by = [policy = &s_.policy, &canary] { return reached_by(*policy, canary->address(), canary->port()); };
  }

  // What `sandy` says of its network decides: that it refused this, and not that it could not reach it.
  void refused(std::string name, std::vector<int> rows, std::string attack, Words words, std::string target, std::string host, std::uint16_t port) {
    Trial& trial = add(std::move(name), std::move(rows), std::move(attack), std::move(words));
    trial.look = [target = std::move(target)](const wire::Json& end, Inside& inside) {
      bool denied = false;
      std::string reason;
      for (const auto& denial : end.value("denials", wire::Json::array())) {
        if (denial.value("target", "") != target) continue;
        const bool failed = denial.value("failed", false);
        denied = denied || !failed;
        if (failed) inside.arrived = true, inside.seen = "it was allowed, and only could not be reached";
        reason = denial.value("reason", "");
      }
      if (inside.report.word == AttemptReport::Word::none || inside.arrived) return;
      if (denied && inside.report.word == AttemptReport::Word::refused) inside.report.detail += ", " + reason;
      if (!denied) inside.arrived = true, inside.seen = "no refusal of it is told";
    };
    trial.allowed_by = [policy = &s_.policy, host = std::move(host), port] { return reached_by(*policy, host, port); };
  }

  // What is told about refusals is for people to read.
  void escapes(const std::string& name) {
    Trial& trial = add("list-escapes", {43}, "put terminal escapes into what is told about refusals", {"connect", kGatewayIpv4, kHttpPort, "%1b[2J%1b]0;x%07." + name + ":443", name + ":443"});
    trial.attack.in = AttackClass::host_side;
    trial.proof = Proof::arrival;
    trial.look = [](const wire::Json& end, Inside& inside) {
      for (const auto& denial : end.value("denials", wire::Json::array())) {
        for (const char* const key : {"target", "reason"}) {
          const auto text = denial.value(key, "");
          inside.arrived = inside.arrived || printable(text) != text;
        }
      }
    };
  }

  Setting& s_;
  Control control_;
  std::vector<Trial> out_;
};

}  // namespace

std::vector<Trial> network_trials(Setting& setting) { return Builder(setting).without_a_list(); }
std::vector<Trial> allowlist_trials(Setting& setting, const Control& control) { return Builder(setting).past_a_list(control); }

std::vector<std::string> allowed_connection(const Setting& setting) {
  return {"socks", kGatewayIpv4, kSocksPort, this_machine(), setting.canaries.allowed ? std::to_string(setting.canaries.allowed->port()) : "9"};
}

}  // namespace sandy::verify
