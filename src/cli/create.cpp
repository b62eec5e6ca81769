// sandy create: a sandbox that outlives this process.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/kept_client.h"
#include "cli/policy_flags.h"
#include "cli/verbs.h"
#include "host/programs.h"
#include "policy/enforcement.h"
#include "policy/json_writer.h"
#include "policy/sizes.h"
#include "session/kept.h"
#include "session/planning.h"

namespace sandy::cli {
namespace {

using wire::Json;

struct CreateOptions {
  PolicyFlags policy;
  std::optional<std::string> name, idle, audit, resume;
};

// `sandy serve --keep`, with the caller's environment: a policy may pass on variables of that.
Result<UniqueFd> start_server() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair", errno_text(errno));
  UniqueFd ours(sockets[0]), theirs(sockets[1]);
  auto program = host::own_program("sandy");
  if (!program) return std::unexpected(program.error());
  // What is left behind on purpose is no orphan of ours to end (host/children.h).
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
  const pid_t child = ::fork();
  if (child < 0) return fail("fork", errno_text(errno));
  if (child == 0) {
    const UniqueFd inherited(::dup(theirs.get()));
    const std::string number = std::to_string(inherited.get());
    ::execl(program->c_str(), "sandy", "serve", "--keep", "--fd", number.c_str(), nullptr);
    ::_exit(kCouldNotStart);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (status != 0) return fail("sandy serve", "could not be started");
  return ours;
}

asio::awaitable<int> create(asio::io_context& io, Json header, std::string payload) {
  auto server = start_server();
  if (!server) {
    print_error(server.error());
    co_return kCouldNotStart;
  }
  const auto client = std::make_shared<KeptClient>(io, std::move(*server));
  auto end = co_await client->request(std::move(header), std::move(payload));
  if (!end || end->header.contains("error")) {
    // Its text has the three parts already.
    if (end) note(end->header.value("detail", ""));
    if (!end) print_error({"sandy serve", "ended before it had a sandbox", ""});
    co_return kCouldNotStart;
  }
  const auto unenforced = policy::unenforced_words(end->header.value("degraded", std::vector<std::string>()));
  if (!unenforced.empty()) note(unenforced);
  const Json published = end->header.value("published", Json::object());
  for (const auto& [port, host_port] : published.items()) note("port " + port + " of the sandbox is 127.0.0.1:" + host_port.dump());
  std::printf("%s\n", end->header.value("sandbox", "").c_str());
  co_return 0;
}

// An option that has no say where another sandbox is gone on with; "": none was given.
std::string option_beside_resume(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options()) {
    const auto name = option->get_name();
    if (option->count() > 0 && name != "--resume" && name != "--name" && name != "--idle-timeout") return name;
  }
  return {};
}

int create(CreateOptions& options, const CLI::App& verb) {
  const auto refuse = [](const Error& error) {
    print_error(in_flags(error));
    return kCouldNotStart;
  };
  Json header = wire::request("create");
  header["keep"] = true;
  std::string payload;
  if (options.name) {
    if (const auto checked = session::check_kept_name(*options.name); !checked) return refuse(checked.error());
    header["name"] = *options.name;
  }
  if (options.idle) {
    const auto idle = policy::parse_duration({*options.idle, "--idle-timeout"});
    if (!idle) return refuse(idle.error());
    header["idle_ms"] = *idle;
  }
  if (options.resume) {
    if (const auto name = option_beside_resume(verb); !name.empty()) return refuse({name, "contradicts --resume, which goes on with the policy that the sandbox had", "leave one of the two out"});
    const auto kept = session::find_kept(*options.resume);
    if (!kept) return refuse(kept.error());
    header["resume"] = kept->record.id;
  } else {
    const policy::Caller caller = session::this_caller();
    auto draft = options.policy.draft(caller);
    if (!draft) return refuse(draft.error());
    const auto policy = session::validate_here(*draft);
    if (!policy) return refuse(policy.error());
    std::string audit = options.audit.value_or("");
    if (!audit.empty() && audit.front() != '/') audit = caller.cwd + "/" + audit;
    Json lengths = Json::array();
    // With its paths in full: the server's directory is another one.
    for (const auto& word : {policy::to_json(*policy), options.policy.policy_file(), audit}) {
      lengths.push_back(word.size());
      payload += word;
    }
    header["args"] = std::move(lengths);
  }
  return run_in_loop([&](asio::io_context& io) { return create(io, header, payload); });
}

}  // namespace

void add_create(CLI::App& app, ExitStatus& status, bool selected) {
  auto* verb = app.add_subcommand("create", "Make a sandbox that is kept: for exec, attach, logs, stop, rm");
  if (!selected) return;
  auto options = std::make_shared<CreateOptions>();
  options->policy.add_to(*verb);
  verb->add_option("--name", options->name, "A name, to be used as its id is")->type_name("NAME");
  verb->add_option("--idle-timeout", options->idle, "End it when nobody has asked for anything for so long, e.g. 30m (default: never)")->type_name("TIME");
  verb->add_option("--audit", options->audit, "Append each decision about the network to this file, a line of JSON each")->type_name("FILE");
  verb->add_option("--resume", options->resume, "Go on with the workspace and the policy of one that has stopped")->type_name("ID");
  verb->footer("Prints its id. Example: sandy create --name build && sandy exec build -- make\nExit status: 125 where it could not start.");
  verb->callback([options, verb, &status] { status.value = create(*options, *verb); });
}

}  // namespace sandy::cli
