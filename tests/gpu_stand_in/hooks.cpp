// Makes the CPU build of torch believe that it has CUDA devices. Nothing is computed here: tensors say that they are on
// such a device, and Python (device.py) computes their values on the CPU.
//
// Torch asks two objects about a kind of device: a guard, which knows the current device and stream of a thread, and
// hooks, which know how many devices there are. Both register themselves when this library is loaded, which has to be
// before torch is: torch asks once and remembers the answer.

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdlib>

namespace {

constexpr auto CUDA = c10::DeviceType::CUDA;
thread_local c10::DeviceIndex current = 0;

c10::DeviceIndex count_devices() {
    const char* text = std::getenv("GPU_STAND_IN_DEVICES");
    return static_cast<c10::DeviceIndex>(text ? std::atoi(text) : 1);
}

c10::Stream only_stream(c10::Device device) {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(CUDA, device.has_index() ? device.index() : current));
}

// A device has one stream, in which everything is done in order: events and waits have nothing to do.
struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return CUDA; }
    c10::Device getDevice() const override { return c10::Device(CUDA, current); }
    void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        if (device.has_index()) current = device.index();
    }
    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::Device before = getDevice();
        uncheckedSetDevice(device);
        return before;
    }
    c10::DeviceIndex deviceCount() const noexcept override { return count_devices(); }
    c10::Stream getStream(c10::Device device) const override { return only_stream(device); }
    c10::Stream getDefaultStream(c10::Device device) const override { return only_stream(device); }
    c10::Stream getNewStream(c10::Device device, int) const override { return only_stream(device); }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return only_stream(device); }
    c10::Stream exchangeStream(c10::Stream stream) const override { return stream; }
    void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
    void block(void*, const c10::Stream&) const override {}
    bool queryEvent(void*) const override { return true; }
    bool queryStream(const c10::Stream&) const override { return true; }
    void synchronizeStream(const c10::Stream&) const override {}
    void synchronizeEvent(void*) const override {}
    void synchronizeDevice(c10::DeviceIndex) const override {}
};

}  // namespace

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

namespace at {

struct CUDAHooks final : CUDAHooksInterface {
    explicit CUDAHooks(CUDAHooksArgs) {}
    void init() const override {}
    bool hasCUDA() const override { return true; }
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(DeviceIndex) const override { return true; }
    int getNumGPUs() const override { return count_devices(); }
    DeviceIndex deviceCount() const override { return count_devices(); }
    DeviceIndex current_device() const override { return current; }
    DeviceIndex getCurrentDevice() const override { return current; }
    void setCurrentDevice(DeviceIndex device) const override { current = device; }
    void deviceSynchronize(DeviceIndex) const override {}
};
REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at

extern "C" int gpu_stand_in_current_device() { return current; }
extern "C" void gpu_stand_in_set_device(int device) { current = static_cast<c10::DeviceIndex>(device); }
