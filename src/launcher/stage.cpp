#include "launcher/stage.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <initializer_list>

#include "launcher/die.h"

namespace sandy::launcher {
namespace {

bool write_text(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  close(fd);
  return written;
}

// A user namespace in which the id `from` stands for the id `to`: what MOUNT_ATTR_IDMAP wants (mount_setattr(2)).
int mapping_namespace(unsigned from_user, unsigned to_user, unsigned from_group, unsigned to_group) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) die("pipe");
  const pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    const pid_t launcher = getppid();
    // After the change of credentials that unshare is, which clears it.
    if (unshare(CLONE_NEWUSER) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != launcher) _exit(1);
    (void)!write(ready[1], "r", 1);
    pause();
    _exit(0);
  }
  close(ready[1]);
  char byte = 0;
  if (read(ready[0], &byte, 1) != 1) {
    errno = EPERM;
    die("a user namespace for an id-mapped mount");
  }
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/%d/uid_map", child);
  snprintf(text, sizeof text, "%u %u 1\n", from_user, to_user);
  if (!write_text(path, text)) die("uid_map");
  snprintf(path, sizeof path, "/proc/%d/gid_map", child);
  snprintf(text, sizeof text, "%u %u 1\n", from_group, to_group);
  if (!write_text(path, text)) die("gid_map");
  snprintf(path, sizeof path, "/proc/%d/ns/user", child);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die("user namespace");
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  close(ready[0]);
  return fd;
}

}  // namespace

void copy_tree(Tree& tree, unsigned user, unsigned group) {
  struct stat st;
  if (fstat(tree.fd, &st) != 0) die("fstat");
  tree.directory = S_ISDIR(st.st_mode);
  const bool mapped = tree.idmap && (st.st_uid != user || st.st_gid != group);
  // Mounts below come along, but for an id-mapped tree: not every file system can be mapped.
  const unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (mapped ? 0U : static_cast<unsigned>(AT_RECURSIVE));
  tree.mount = static_cast<int>(syscall(SYS_open_tree, tree.fd, "", flags));
  if (tree.mount < 0) die("open_tree");
  // What the host mounts below later must not come along: it would be as writable there as here.
  mount_attr alone{};
  alone.propagation = MS_PRIVATE;
  if (syscall(SYS_mount_setattr, tree.mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &alone, sizeof alone) != 0) die("mount propagation");
  if (!mapped) return;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  const int mapping = mapping_namespace(st.st_uid, user, st.st_gid, group);
  attributes.userns_fd = static_cast<__u64>(mapping);
  if (syscall(SYS_mount_setattr, tree.mount, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) {
    dprintf(2, "sandy-launch: a directory to be writable belongs to user %u, and its file system can't be id-mapped: %s\n", st.st_uid,
            strerrordesc_np(errno));
    _exit(1);
  }
  close(mapping);
}

void stage(Tree* trees, int count) {
  if (unshare(CLONE_NEWNS) != 0) die("a mount namespace");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) die("mount propagation");
  const char* place = nullptr;
  for (const char* candidate : {"/mnt", "/media", "/srv", "/run"}) {
    struct stat st;
    if (place == nullptr && stat(candidate, &st) == 0 && S_ISDIR(st.st_mode)) place = candidate;
  }
  if (place == nullptr) die("a directory to stage in");
  if (mount("sandy", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k") != 0) die(place);
  for (int i = 0; i < count; ++i) {
    char path[64];
    snprintf(path, sizeof path, "%s/%d", place, i);
    if (trees[i].directory) {
      if (mkdir(path, 0755) != 0) die(path);
    } else {
      const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (file < 0) die(path);
      close(file);
    }
    if (syscall(SYS_move_mount, trees[i].mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0) die("move_mount");
    close(trees[i].mount);
    const int staged = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (staged < 0 || dup2(staged, trees[i].fd) < 0) die(path);
    close(staged);
  }
}

}  // namespace sandy::launcher
