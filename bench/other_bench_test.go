package bench

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-99a027e8/informer/bench/fixture"
)

// A variant is another fixture: nothing is to be tuned to the one of the table.
// Its benchmarks are those of the table.
type variant[T fixture.Object] struct {
	fix *made[T]
	// full and small are how many objects there are, small in quick mode.
	full, small int
}

// anyVariant is a variant of any kind.
type anyVariant interface {
	name() string
	add(*testing.B)
	update(*testing.B)
	get(*testing.B)
	byGroup(*testing.B)
	watch(*testing.B)
	hop(*testing.B)
	spec(task string) childSpec
}

// variants returns the fixtures of the second part of the table, without
// objects as yet.
func variants() []anyVariant {
	const seed = 7
	return []anyVariant{
		variant[*corev1.Pod]{&made[*corev1.Pod]{kind: fixture.Pods(), seed: seed}, 20_000, 8_000},
		variant[*corev1.ConfigMap]{&made[*corev1.ConfigMap]{kind: fixture.ConfigMaps(), seed: seed}, 5_000, 2_000},
		variant[*corev1.Node]{&made[*corev1.Node]{kind: fixture.Nodes(), seed: seed}, 5_000, 2_000},
		variant[*unstructured.Unstructured]{&made[*unstructured.Unstructured]{kind: fixture.Custom(), seed: seed}, 20_000, 4_000},
	}
}

func (v variant[T]) name() string { return v.fix.kind.Name }

func (v variant[T]) n() int { return pick(v.full, v.small) }

func (v variant[T]) add(b *testing.B) { benchAdd(b, v.fix, v.n()) }

func (v variant[T]) update(b *testing.B) { benchUpdate(b, v.fix, v.n(), v.fix.kind.TouchAll) }

func (v variant[T]) get(b *testing.B) { benchGet(b, v.fix, v.n()) }

func (v variant[T]) byGroup(b *testing.B) { benchByGroup(b, v.fix, v.n()) }

func (v variant[T]) watch(b *testing.B) { benchWatch(b, v.fix, v.n(), 2*v.n(), 4) }

func (v variant[T]) hop(b *testing.B) {
	benchHop(b, v.fix, v.n(), pick(200_000, 50_000), theirQueues[0].make)
}

func (v variant[T]) spec(task string) childSpec {
	return childSpec{Task: task, Kind: v.fix.kind.Name, Seed: v.fix.seed, N: v.n()}
}

func eachVariant(b *testing.B, run func(anyVariant, *testing.B)) {
	for _, v := range variants() {
		b.Run(v.name(), func(b *testing.B) { run(v, b) })
	}
}

func BenchmarkOS1_Add(b *testing.B) { eachVariant(b, anyVariant.add) }

func BenchmarkOS3_UpdateSame(b *testing.B) { eachVariant(b, anyVariant.update) }

func BenchmarkOS6_Get(b *testing.B) { eachVariant(b, anyVariant.get) }

func BenchmarkOS8_ByIndex(b *testing.B) { eachVariant(b, anyVariant.byGroup) }

func BenchmarkOI1_WatchEvents(b *testing.B) { eachVariant(b, anyVariant.watch) }

func BenchmarkOF1_Hop(b *testing.B) { eachVariant(b, anyVariant.hop) }

func BenchmarkOI3_Sync(b *testing.B) {
	eachVariant(b, func(v anyVariant, b *testing.B) { benchInChild(b, v.spec("sync")) })
}

func BenchmarkOW1_JSONList(b *testing.B) { benchOtherWire(b, jsonList) }

func BenchmarkOW2_JSONStream(b *testing.B) { benchOtherWire(b, jsonStream) }

func BenchmarkOW3_ProtoList(b *testing.B) { benchOtherWire(b, protoList) }

func BenchmarkOW4_ProtoStream(b *testing.B) { benchOtherWire(b, protoStream) }

// benchOtherWire leaves out what there is not: custom resources as protobuf.
func benchOtherWire(b *testing.B, mode wireMode) {
	eachVariant(b, func(v anyVariant, b *testing.B) {
		spec := v.spec("wire")
		if spec.Mode = mode; spec.Kind == "custom" && mode.proto() {
			b.Skip("custom resources have no protobuf")
		}
		benchOverWire(b, spec)
	})
}
