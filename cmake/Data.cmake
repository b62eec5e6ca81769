# What is installed besides the programs: policies that have names, completions, man pages.

# Policies: where `sandy` looks for them (src/host/named_policy.cpp). In the build tree they lie beside it.
set(SANDY_POLICIES_DIR "${SANDY_DATA_DIR}/policies" CACHE STRING "Where policies are installed: below the prefix, or absolute")
file(GLOB sandy_policies CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/policies/*.json)
foreach(policy ${sandy_policies})
  get_filename_component(name ${policy} NAME)
  configure_file(${policy} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/policies/${name} COPYONLY)
endforeach()
install(FILES ${sandy_policies} DESTINATION ${SANDY_POLICIES_DIR} COMPONENT policies)

# Completions: `sandy` prints them. One that can't be run here (built for another machine) makes none.
if(NOT CMAKE_CROSSCOMPILING)
  set(completions ${CMAKE_BINARY_DIR}/completions)
  foreach(place "bash sandy" "zsh _sandy" "fish sandy.fish")
    string(REPLACE " " ";" place ${place})
    list(GET place 0 shell)
    list(GET place 1 name)
    add_custom_command(OUTPUT ${completions}/${shell}/${name}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}/${shell}
      COMMAND sandy completion ${shell} > ${completions}/${shell}/${name}
      DEPENDS sandy VERBATIM)
    list(APPEND completion_files ${completions}/${shell}/${name})
  endforeach()
  add_custom_target(completions ALL DEPENDS ${completion_files})
  # All three have directories for what other packages bring, below share/ of their own prefix.
  set(SANDY_ZSH_DIR "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" CACHE STRING "Where zsh looks for functions (Debian: share/zsh/vendor-completions)")
  install(FILES ${completions}/bash/sandy DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT completions)
  install(FILES ${completions}/zsh/_sandy DESTINATION ${SANDY_ZSH_DIR} COMPONENT completions)
  install(FILES ${completions}/fish/sandy.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT completions)
endif()

# Man pages, from one source each.
set(SANDY_MAN AUTO CACHE STRING "Make and install the man pages: ON, OFF, or AUTO (where scdoc is)")
set_property(CACHE SANDY_MAN PROPERTY STRINGS AUTO ON OFF)
if(SANDY_MAN)
  find_program(SANDY_SCDOC scdoc)
  if(SANDY_SCDOC)
    file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/man/*.scd)
    foreach(page ${pages})
      get_filename_component(name ${page} NAME_WLE)
      string(REGEX MATCH "[0-9]$" section ${name})
      add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/man/${name}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
        COMMAND ${SANDY_SCDOC} < ${page} > ${CMAKE_BINARY_DIR}/man/${name}
        DEPENDS ${page} VERBATIM)
      list(APPEND man_files ${CMAKE_BINARY_DIR}/man/${name})
      install(FILES ${CMAKE_BINARY_DIR}/man/${name} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT docs)
    endforeach()
    add_custom_target(man ALL DEPENDS ${man_files})
  elseif(SANDY_MAN STREQUAL "AUTO")
    message(STATUS "No man pages: there is no scdoc (Debian: apt install scdoc)")
  else()
    message(FATAL_ERROR "SANDY_MAN=${SANDY_MAN}: man pages can't be made, there is no program scdoc. Install it (Debian: apt install scdoc), or set SANDY_MAN to OFF")
  endif()
endif()

# Terms of the libraries that are linked in, as Debian has them, for a wheel, which brings no other package. Boost's ask for no such copy, and what a
# Debian package says of the others is in its copyright file.
set(SANDY_LICENSES_DIR "${SANDY_DATA_DIR}/licenses" CACHE STRING "Where the terms of the libraries are installed")
foreach(package libc-ares-dev libc6-dev libcli11-dev libidn2-dev libpsl-dev libseccomp-dev "libstdc++-*-dev" libunistring-dev nlohmann-json3-dev)
  file(GLOB terms /usr/share/doc/${package}/copyright)
  if(NOT terms)
    message(STATUS "No terms of ${package} to install: there is no /usr/share/doc/${package}/copyright")
    continue()
  endif()
  list(GET terms -1 terms)
  string(REGEX REPLACE "(-[*])?-dev$" "" library ${package})
  install(FILES ${terms} DESTINATION ${SANDY_LICENSES_DIR} RENAME ${library}.txt COMPONENT licenses)
endforeach()
foreach(terms GPL-3 LGPL-2.1 LGPL-3)  # those that these name
  if(EXISTS /usr/share/common-licenses/${terms})
    install(FILES /usr/share/common-licenses/${terms} DESTINATION ${SANDY_LICENSES_DIR} RENAME ${terms}.txt COMPONENT licenses)
  endif()
endforeach()
