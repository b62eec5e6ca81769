#include "proxy/dns_message.h"

#include <gtest/gtest.h>

#include <string_view>

namespace sandy::proxy::dns {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put(Bytes& out, std::size_t number, int width) {
  for (int i = width; i-- > 0;) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

Bytes name(std::string_view text) {
  Bytes out;
  while (!text.empty()) {
    const auto label = text.substr(0, text.find('.'));
    put(out, label.size(), 1);
    out.insert(out.end(), label.begin(), label.end());
    text.remove_prefix(std::min(label.size() + 1, text.size()));
  }
  put(out, 0, 1);
  return out;
}

struct Message {
  std::uint16_t flags = 0x0100;  // recursion desired
  std::uint16_t counts[4] = {1, 0, 0, 0};
  Bytes question = [] {
    Bytes out = name("WwW.Example.com");
    put(out, kA, 2);
    put(out, kInternet, 2);
    return out;
  }();
  Bytes rest{};

  Bytes bytes() const {
    Bytes out;
    put(out, 0x1234, 2);
    put(out, flags, 2);
    for (const auto count : counts) put(out, count, 2);
    out.insert(out.end(), question.begin(), question.end());
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }
};

Bytes opt(std::size_t size, std::size_t version = 0, const Bytes& data = {}) {
  Bytes out{0};
  put(out, kOpt, 2);
  put(out, size, 2);
  put(out, version << 16, 4);
  put(out, data.size(), 2);
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

Query query_of(const Message& message) { return std::get<Query>(parse_query(message.bytes())); }

TEST(DnsQuery, Plain) {
  const auto query = query_of({});
  EXPECT_EQ(query.id, 0x1234);
  EXPECT_EQ(query.name, "www.example.com");
  EXPECT_EQ(query.question, Message{}.question);  // to the letter
  EXPECT_EQ(query.type, kA);
  EXPECT_TRUE(query.plain && query.recursion_desired);
  EXPECT_FALSE(query.edns_bytes);
}

TEST(DnsQuery, Edns) {
  EXPECT_EQ(query_of({.counts = {1, 0, 0, 1}, .rest = opt(1232)}).edns_bytes, 1232);
  EXPECT_EQ(query_of({.counts = {1, 0, 0, 1}, .rest = opt(1232, 0, {0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8})}).edns_bytes, 1232);  // a cookie
  EXPECT_EQ(query_of({.counts = {1, 0, 0, 1}, .rest = opt(5)}).edns_bytes, 512);
}

TEST(DnsQuery, OddNames) {
  Message message;
  message.question = {3, 'a', '.', 'b', 1, 'c', 0, 0, 1, 0, 1};
  EXPECT_FALSE(query_of(message).plain);  // else it were a.b.c
  message.question = {2, 'a', 0, 0, 0, 1, 0, 1};
  EXPECT_FALSE(query_of(message).plain);
  message.question = {0, 0, 2, 0, 1};
  EXPECT_EQ(query_of(message).name, "");
  message.question = name(std::string(63, 'x') + "." + std::string(63, 'x') + "." + std::string(63, 'x') + "." + std::string(61, 'x'));
  ASSERT_EQ(message.question.size(), 255U);
  put(message.question, kA, 2);
  put(message.question, kInternet, 2);
  EXPECT_EQ(query_of(message).name.size(), 253U);
}

TEST(DnsQuery, Refused) {
  Message longest;
  longest.question = name(std::string(63, 'x') + "." + std::string(63, 'x') + "." + std::string(63, 'x') + "." + std::string(62, 'x'));
  put(longest.question, kA, 2);
  put(longest.question, kInternet, 2);
  const std::pair<Message, Rcode> cases[] = {
      {{.flags = 0x0900}, Rcode::not_implemented},  // an inverse query
      {{.flags = 0x2900}, Rcode::not_implemented},  // an update
      {{.counts = {0, 0, 0, 0}, .question = {}}, Rcode::format_error},
      {{.counts = {2, 0, 0, 0}}, Rcode::format_error},
      {{.counts = {1, 1, 0, 0}}, Rcode::format_error},
      {{.counts = {1, 0, 1, 0}}, Rcode::format_error},
      {{.counts = {1, 0, 0, 1}}, Rcode::format_error},
      {{.question = {0xC0, 12, 0, 1, 0, 1}}, Rcode::format_error},  // a pointer to itself
      {{.question = {1, 'a', 0xC0, 12, 0, 1, 0, 1}}, Rcode::format_error},
      {{.question = {0x40, 0, 0, 1, 0, 1}}, Rcode::format_error},
      {{.question = {63, 'a', 0, 0, 1, 0, 1}}, Rcode::format_error},
      {{.question = {1, 'a', 0, 0, 1, 0}}, Rcode::format_error},
      {longest, Rcode::format_error},
      {{.rest = {0}}, Rcode::format_error},
      {{.counts = {1, 0, 0, 2}, .rest = [] { Bytes out = opt(1232), more = opt(1232); out.insert(out.end(), more.begin(), more.end()); return out; }()}, Rcode::format_error},
      {{.counts = {1, 0, 0, 1}, .rest = opt(1232, 1)}, Rcode::bad_version},
      {{.counts = {1, 0, 0, 65535}, .rest = opt(1232)}, Rcode::format_error},
  };
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const auto got = parse_query(cases[i].first.bytes());
    ASSERT_TRUE(std::holds_alternative<Refusal>(got)) << i;
    EXPECT_EQ(std::get<Refusal>(got).rcode, cases[i].second) << i;
    EXPECT_EQ(std::get<Refusal>(got).id, 0x1234);
    EXPECT_GE(encode_refusal(std::get<Refusal>(got)).size(), kHeaderBytes);
  }
}

TEST(DnsQuery, AnswersAndFragmentsGetNoAnswer) {
  for (const Bytes& bytes : {Bytes{}, Bytes(11, 0), Message{.flags = 0x8180}.bytes()}) {
    const auto got = parse_query(bytes);
    ASSERT_TRUE(std::holds_alternative<Refusal>(got));
    EXPECT_FALSE(std::get<Refusal>(got).rcode);
    EXPECT_TRUE(encode_refusal(std::get<Refusal>(got)).empty());
  }
}

TEST(DnsResponse, Answers) {
  const auto query = query_of({});
  const Answer answers[] = {{*policy::parse_ip_address("198.18.0.1"), 60}};
  Bytes expected;
  put(expected, 0x1234, 2);
  put(expected, 0x8580, 2);
  for (const std::size_t count : {1, 1, 0, 0}) put(expected, count, 2);
  expected.insert(expected.end(), query.question.begin(), query.question.end());
  for (const std::uint8_t byte : {0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1}) expected.push_back(byte);
  EXPECT_EQ(encode_response(query, Rcode::no_error, answers, 512), expected);
}

TEST(DnsResponse, NamesErrorsAndEdns) {
  const auto plain = query_of({});
  EXPECT_EQ(encode_response(plain, Rcode::name_error, {}, 512)[3] & 0xF, 3);
  const auto with_edns = query_of({.counts = {1, 0, 0, 1}, .rest = opt(1232)});
  const auto response = encode_response(with_edns, Rcode::no_error, {}, 512);
  EXPECT_EQ(response[11], 1);
  EXPECT_EQ(response.size(), kHeaderBytes + plain.question.size() + 11);
  const Answer pointer[] = {{std::string("a.example"), 1}};
  const auto named = encode_response(plain, Rcode::no_error, pointer, 512);
  const Bytes end = name("a.example");
  EXPECT_TRUE(std::equal(end.rbegin(), end.rend(), named.rbegin()));
}

TEST(DnsResponse, TooLongOnesAreTruncated) {
  const auto query = query_of({});
  const std::vector<Answer> answers(40, Answer{*policy::parse_ip_address("2001:db8::1"), 60});
  const auto cut = encode_response(query, Rcode::no_error, answers, 512);
  EXPECT_LE(cut.size(), 512U);
  EXPECT_NE(cut[2] & 0x02, 0);
  EXPECT_EQ(cut[7], 0);
  const auto whole = encode_response(query, Rcode::no_error, answers, 65'535);
  EXPECT_EQ(whole[2] & 0x02, 0);
  EXPECT_EQ(whole[7], 40);
}

TEST(ReverseAddress, Table) {
  EXPECT_EQ(reverse_address("4.3.2.1.in-addr.arpa")->text(), "1.2.3.4");
  EXPECT_EQ(reverse_address("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa")->text(), "2001:db8::1");
  for (const char* wrong : {"", "in-addr.arpa", ".in-addr.arpa", "3.2.1.in-addr.arpa", "5.4.3.2.1.in-addr.arpa", "256.3.2.1.in-addr.arpa", "04.3.2.1.in-addr.arpa",
                            "a.3.2.1.in-addr.arpa", "4..2.1.in-addr.arpa", "4.3.2.1.in-addr.arpa.evil.org", "1.ip6.arpa"}) {
    EXPECT_FALSE(reverse_address(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace sandy::proxy::dns
