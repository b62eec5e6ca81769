// As root: puts trees where the sandbox's user can reach them.
#pragma once

namespace sandy::launcher {

struct Tree {
  int fd;          // the caller's descriptor, and then the staged tree's
  bool idmap;      // with the sandbox's user in the place of the tree's owner
  int mount;       // the detached copy
  bool directory;
};

// A detached copy of the mount that `tree.fd` is in, from that place on.
void copy_tree(Tree& tree, unsigned user, unsigned group);

// bubblewrap binds by the path that a descriptor has (it reads /proc/self/fd/N), as the sandbox's user, who may not enter, say, /root. So each tree is
// attached below a directory that all may enter, in a mount namespace that only we and bubblewrap are in.
void stage(Tree* trees, int count);

}  // namespace sandy::launcher
