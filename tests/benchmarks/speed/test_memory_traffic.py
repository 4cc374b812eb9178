"""What a compiled program moves through memory, read from its text."""

from benchmarks.speed.memory_traffic import bytes_of, launches

PROGRAM = """
%fused (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %twice = f32[4]{0} add(%p, %p)
}

ENTRY %main (x: f32[15,2,8], w: bf16[8,8]) -> (f32[15,2,8]) {
  %x = f32[15,2,8]{2,1,0} parameter(0)
  %w = bf16[8,8]{1,0} parameter(1)
  %small = f32[]{} constant(0)
  %both = (bf16[15,2,8]{2,1,0}, f32[15]{0}) fusion(%x), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/convert"}
  %first = bf16[15,2,8]{2,1,0} get-tuple-element(%both), index=0
  %product = f32[15,2,8]{2,1,0} custom-call(%first, %w), custom_call_target="gemm"
  ROOT %out = (f32[15,2,8]{2,1,0}) tuple(%product)
}
"""


def test_bytes_of_types() -> None:
    assert bytes_of("f32[15,2,8]{2,1,0}") == 15 * 2 * 8 * 4
    assert bytes_of("(bf16[3]{0}, pred[5]{0}, f32[]{})") == 6 + 5 + 4


def test_every_launch_counts_what_it_reads_and_writes() -> None:
    product, convert = launches(PROGRAM)
    assert (product.name, convert.name) == ("product", "both")
    assert convert.bytes == 960 + 480 + 60
    assert convert.made_from == "jit(f)/convert"
    assert product.bytes == 480 + 128 + 960
