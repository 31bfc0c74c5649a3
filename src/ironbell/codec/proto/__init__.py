"""Messages and service bases of the gRPC interfaces, generated from the `.proto` files beside this module.

`workflow.proto` is wire-compatible with upstream's agent and server; `log.proto` is our own addition, which peers
that do not know it answer with UNIMPLEMENTED. `tools/generate_proto.py` writes the `*_pb2` and `*_grpc` modules;
the generated code is never newer than the protobuf runtime it was made with.

Source: tinkerbell/tinkerbell: pkg/proto (field numbers, names and types only).
"""
