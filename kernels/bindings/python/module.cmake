# spikformer._native, for pip: the core, and the neurons that training shares by OpenMP.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(nanobind CONFIG REQUIRED)
find_package(OpenMP COMPONENTS CXX)

nanobind_add_module(_native NOMINSIZE
  kernels/bindings/python/engine.cpp
  kernels/bindings/python/events.cpp
  kernels/bindings/python/kernels.cpp
  kernels/bindings/python/maps.cpp
  kernels/bindings/python/module.cpp
  kernels/bindings/python/products.cpp
  kernels/bindings/python/streams.cpp
  kernels/core/lif.cpp)
set_source_files_properties(kernels/core/lif.cpp PROPERTIES COMPILE_OPTIONS "${same_bits}")
target_compile_definitions(_native PRIVATE
  SPIKFORMER_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
target_link_libraries(_native PRIVATE spikformer_core)
if(OpenMP_CXX_FOUND)
  target_link_libraries(_native PRIVATE OpenMP::OpenMP_CXX)
endif()
add_warnings(_native)

install(TARGETS _native LIBRARY DESTINATION spikformer)
