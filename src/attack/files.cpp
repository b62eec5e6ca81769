// Files of the host, and what leads to them: rows 18, 30, 31, 34, 36, 37, 45.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attack/attempts.h"
#include "attack/report.h"

namespace sandy::attack {
namespace {

// Reports what a file begins with; returns an error where nothing can be read.
int read_one(const char* path) {
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  char content[256];
  const ssize_t size = fd < 0 ? -1 : read(fd, content, sizeof content);
  if (size > 0) done(content, static_cast<size_t>(size));
  const int error = size == 0 ? ENODATA : errno;
  if (fd >= 0) close(fd);
  return error;
}

// read PATH...: the beginning of the first that can be read.
void read_file(char** paths) {
  int error = ENOENT;
  for (; *paths != nullptr; ++paths) error = read_one(*paths);
  refused(error);
}

// list PATH...: a name in the first that has one.
void list(char** paths) {
  int error = ENOENT;
  for (; *paths != nullptr; ++paths) {
    DIR* const directory = opendir(*paths);
    error = directory == nullptr ? errno : ENODATA;
    while (const dirent* entry = directory == nullptr ? nullptr : readdir(directory)) {
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) done(entry->d_name);
    }
    if (directory != nullptr) closedir(directory);
  }
  refused(error);
}

// read-or-list PATH... [-NAME...]: what is there, of either kind. A NAME in a directory is not taken for a find.
void read_or_list(char** arguments) {
  const auto is_left_out = [arguments](const char* name) {
    for (char** argument = arguments; *argument != nullptr; ++argument) {
      if (**argument == '-' && strcmp(*argument + 1, name) == 0) return true;
    }
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
  };
  int error = ENOENT;
  for (char** path = arguments; *path != nullptr; ++path) {
    if (**path == '-') continue;
    DIR* const directory = opendir(*path);
    if (directory == nullptr) {
      error = errno == ENOTDIR ? read_one(*path) : errno;
      continue;
    }
    error = ENODATA;
    while (const dirent* entry = readdir(directory)) {
      if (!is_left_out(entry->d_name)) done(entry->d_name);
    }
    closedir(directory);
  }
  refused(error);
}

// create PATH...: a new file.
void create(char** paths) {
  int error = 0;
  for (; *paths != nullptr; ++paths) {
    const int fd = open(*paths, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, "x", 1) == 1) done(*paths);
    error = errno;
  }
  refused(error);
}

// change PATH...: opens for writing, and writes nothing. A program that runs gives ETXTBSY before the kernel looks whether its mount is read-only, which
// access(2) tells; once it has ended, it could be changed.
void change(char** paths) {
  int error = 0;
  for (; *paths != nullptr; ++paths) {
    const int fd = open(*paths, O_WRONLY | O_CLOEXEC);
    error = errno;
    if (fd >= 0 || (error == ETXTBSY && access(*paths, W_OK) == 0)) done(*paths);
    if (error == ETXTBSY) error = errno;
  }
  refused(error);
}

// symlink TARGET LINK: makes it, and reads through it.
void symbolic_link(char** arguments) {
  if (symlink(arguments[0], arguments[1]) != 0) refused(errno);
  read_file(arguments + 1);
}

// hard-link TARGET LINK
void hard_link(char** arguments) {
  if (link(arguments[0], arguments[1]) != 0) refused(errno);
  read_file(arguments + 1);
}

// plant-link TARGET LINK: for whoever follows it from outside.
void plant_link(char** arguments) { symlink(arguments[0], arguments[1]) == 0 ? done(arguments[1]) : refused(errno); }
void plant_fifo(char** arguments) { mkfifo(arguments[0], 0600) == 0 ? done(arguments[0]) : refused(errno); }
void make_directory(char** arguments) { mkdir(arguments[0], 0700) == 0 ? done(arguments[0]) : refused(errno); }

// set-user-id PATH: a program that runs as whoever owns it.
void set_user_id(char** arguments) {
  const int fd = open(arguments[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
  if (fd < 0) refused(errno);
  if (fchmod(fd, 04755) != 0) refused(errno);
  struct stat st{};
  fstat(fd, &st) == 0 && (st.st_mode & S_ISUID) != 0 ? done(arguments[0]) : refused("the bit is dropped");
}

// device PATH: a whiteout, which is a device of no right for anyone (mknod(2)), and hides files of an overlay.
void device(char** arguments) { mknod(arguments[0], S_IFCHR | 0600, 0) == 0 ? done(arguments[0]) : refused(errno); }

// lease PATH: holds off who opens the file.
void lease(char** arguments) {
  const int fd = open(arguments[0], O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) refused(errno);
  fcntl(fd, F_SETLEASE, F_RDLCK) == 0 ? done(arguments[0]) : refused(errno);
}

}  // namespace

const Attempt kFiles[] = {
    {"read", 1, read_file},
    {"list", 1, list},
    {"read-or-list", 1, read_or_list},
    {"create", 1, create},
    {"change", 1, change},
    {"symlink", 2, symbolic_link},
    {"hard-link", 2, hard_link},
    {"plant-link", 2, plant_link},
    {"plant-fifo", 1, plant_fifo},
    {"make-directory", 1, make_directory},
    {"set-user-id", 1, set_user_id},
    {"device", 1, device},
    {"lease", 1, lease},
    {nullptr, 0, nullptr},
};

}  // namespace sandy::attack
