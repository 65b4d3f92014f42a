"""What many trials show: conformance against its noise floor, with its uncertainty."""
