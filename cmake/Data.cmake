# What is installed besides the programs: policies that have names, completions.

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
