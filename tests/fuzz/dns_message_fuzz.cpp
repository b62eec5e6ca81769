// links: sandy_proxy_core
//
// A query from the network: whatever it is, there is an answer of bounded size or none, and never to an answer. What is accepted is repeated to the letter, and
// an answer to it is no query.
#include <cstdint>

#include "broken.h"
#include "proxy/dns_message.h"

using namespace sandy::proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> message(data, size);
  const auto parsed = dns::parse_query(message);
  if (const auto* refusal = std::get_if<dns::Refusal>(&parsed)) {
    const auto answer = dns::encode_refusal(*refusal);
    if (answer.size() > 23) broken("a refusal is longer than a header and EDNS");
    if (!answer.empty() && (size < dns::kHeaderBytes || answer[0] != data[0] || answer[1] != data[1] || (data[2] & 0x80) != 0)) broken("a refusal of what is no query");
    return 0;
  }
  const auto& query = std::get<dns::Query>(parsed);
  if (query.name.size() > 253 || query.question.size() > 259) broken("a name that is too long");
  (void)dns::reverse_address(query.name);
  const sandy::policy::IpAddress address{};
  const dns::Answer answers[] = {{address, 60}, {std::string("a.example"), 1}};
  for (const std::size_t limit : {std::size_t{512}, std::size_t{65'535}}) {
    const auto response = dns::encode_response(query, dns::Rcode::no_error, answers, limit);
    if (response.size() > limit) broken("a response over the limit");
    const std::span<const std::uint8_t> bytes(response);
    if (!std::equal(query.question.begin(), query.question.end(), bytes.begin() + dns::kHeaderBytes)) broken("another question in the response");
    const auto again = dns::parse_query(bytes);
    if (!std::holds_alternative<dns::Refusal>(again) || std::get<dns::Refusal>(again).rcode) broken("an answer that would be answered");
  }
  return 0;
}
