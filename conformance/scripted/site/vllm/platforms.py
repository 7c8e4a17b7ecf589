"""Where the scripted engine says that it is."""


class CpuPlatform:
    """A host without an accelerator."""

    device_type = "cpu"


current_platform = CpuPlatform()
