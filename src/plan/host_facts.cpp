#include "plan/host_facts.h"

namespace sandy::plan {

const std::vector<std::string>& system_paths() {
  static const std::vector<std::string> paths{"/usr",  "/bin",   "/sbin",      "/lib",      "/lib32",
                                              "/lib64", "/libx32", "/nix/store", "/gnu/store"};
  return paths;
}

const std::vector<std::string>& etc_candidates() {
  static const std::vector<std::string> names{
      "alternatives",  // links that /usr/bin goes through
      "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies", "debian_version", "dpkg/origins", "environment.d",
      "ethertypes", "fonts", "gai.conf", "gprofng.rc", "host.conf", "inputrc", "issue", "java-11-openjdk", "java-17-openjdk",
      "java-21-openjdk", "java-25-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias", "locale.conf", "lsb-release",
      "magic", "magic.mime", "mime.types", "networks", "os-release", "perl", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem",
      "pki/tls/openssl.cnf", "profile", "profile.d", "protocols", "python3", "python3.11", "python3.12", "python3.13", "python3.14", "rpc",
      "services", "shells", "skel", "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "terminfo", "timezone", "vim", "xattr.conf"};
  return names;
}

}  // namespace sandy::plan
