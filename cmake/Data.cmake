# What is installed besides the programs: policies that have names.

# Policies: where `sandy` looks for them (src/host/named_policy.cpp). In the build tree they lie beside it.
set(SANDY_POLICIES_DIR "${SANDY_DATA_DIR}/policies" CACHE STRING "Where policies are installed: below the prefix, or absolute")
file(GLOB sandy_policies CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/policies/*.json)
foreach(policy ${sandy_policies})
  get_filename_component(name ${policy} NAME)
  configure_file(${policy} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/policies/${name} COPYONLY)
endforeach()
install(FILES ${sandy_policies} DESTINATION ${SANDY_POLICIES_DIR} COMPONENT policies)
