# Where things are installed. Components: `programs` (with `command`, the link in PATH), `policies`, `completions`, `docs` (man pages), `licenses`.

# The programs lie side by side, where they find each other. Of these, only `sandy` is for people.
set(SANDY_PROGRAMS_DIR "${CMAKE_INSTALL_LIBEXECDIR}/sandy" CACHE STRING "Where the programs are installed")
set(SANDY_DATA_DIR "${CMAKE_INSTALL_DATADIR}/sandy" CACHE STRING "Where policies are installed")

# sandy_install_program(TARGET)
function(sandy_install_program target)
  install(TARGETS ${target} RUNTIME DESTINATION ${SANDY_PROGRAMS_DIR} COMPONENT programs)
endfunction()

# /usr/bin/sandy -> ../libexec/sandy/sandy: not a copy, as a program is looked for beside the one that runs.
install(CODE "
  set(bin \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  file(RELATIVE_PATH program \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\" \"\${CMAKE_INSTALL_PREFIX}/${SANDY_PROGRAMS_DIR}/sandy\")
  file(MAKE_DIRECTORY \"\${bin}\")
  file(CREATE_LINK \"\${program}\" \"\${bin}/sandy\" SYMBOLIC)
" COMPONENT command)

# The seccomp policies are compiled into the programs; these are for people, to read and to start their own from.
install(DIRECTORY seccomp-policies/ DESTINATION ${SANDY_DATA_DIR}/seccomp COMPONENT policies FILES_MATCHING PATTERN "*.json" PATTERN "README.md")
