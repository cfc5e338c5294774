# libspikformer with its header, for `cmake --install`; -DBUILD_SHARED_LIBS=ON makes it a shared one.
include(GNUInstallDirs)
file(STRINGS src/spikformer/__init__.py version REGEX "^__version__")
string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" version "${version}")

add_library(spikformer
  kernels/bindings/c/load_file.cpp
  kernels/bindings/c/probes.cpp
  kernels/bindings/c/spikformer.cpp
  kernels/core/engine_file.cpp
  kernels/core/json.cpp
  kernels/core/op_reader.cpp
  kernels/core/preprocessing.cpp
  kernels/core/resample.cpp
  kernels/core/tensor_file.cpp
  kernels/core/utf8.cpp)
target_link_libraries(spikformer PRIVATE spikformer_core)
target_compile_options(spikformer PRIVATE ${same_bits})
target_compile_definitions(spikformer PRIVATE SPIKFORMER_BUILDS_LIBRARY)
target_include_directories(spikformer PUBLIC kernels/bindings/c)
set_target_properties(spikformer PROPERTIES
  VERSION ${version} SOVERSION 0
  PUBLIC_HEADER "kernels/bindings/c/spikformer.h;kernels/bindings/c/spikformer_probes.h"
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
add_warnings(spikformer)

configure_file(kernels/bindings/c/spikformer.pc.in spikformer.pc @ONLY)
install(TARGETS spikformer)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/spikformer.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
