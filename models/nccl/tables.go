package nccl

// baseLatencies are the constant latencies of an operation, in us, by algorithm and protocol (tuning.cc:
// baseLatencies).
var baseLatencies = map[Algorithm][Protocols]float64{
	Tree: {6.8, 14, 8.4},
	Ring: {6.6, 14, 8.4},
	PAT:  {8, 8, 8},
}

// hop is a way of data from a rank to the next.
type hop uint8

const (
	overNVLink hop = iota
	overPCI
	overNet
)

// hopLatencies are what a step takes, in us, by hop, algorithm and protocol (tuning.cc: hwLatencies).
var hopLatencies = [...]map[Algorithm][Protocols]float64{
	overNVLink: {
		Tree:     {0.6, 1.25, 4},
		Ring:     {0.6, 1.9, 3.4},
		NVLS:     {0, 0, 25},
		NVLSTree: {0, 0, 25},
		PAT:      {0, 0, 4},
	},
	overPCI: {
		Tree: {1, 1.9, 4},
		Ring: {1, 2.5, 5.7},
		PAT:  {0, 0, 4},
	},
	overNet: {
		Tree:     {5, 8.5, 14},
		Ring:     {2.7, 4, 14},
		NVLS:     {0, 0, 18},
		NVLSTree: {0, 0, 20.9},
		PAT:      {0, 0, 14},
	},
}

// The limits that follow are GB/s, by 1, 2, and more nodes.
type byNodes [3]float64

// limit returns the one on a number of nodes.
func (b byNodes) limit(nodes int) float64 { return b[min(nodes, 3)-1] }

// llMax limits all channels of LL (tuning.cc: llMaxBws). Inside a node it belongs to the GPU; between nodes the rows
// are those of Intel's and AMD's CPUs, which have Volta's and Ampere's place.
var llMax = [...]byNodes{
	Volta:     {39, 39, 20.4},
	Ampere:    {87.7, 22.5, 19},
	Hopper:    {141, 45, 35},
	Blackwell: {282, 90, 70},
}

// The limits of a channel (tuning.cc: perChMaxRingLL128Bws, perChMaxTreeLL128Bws, perChMaxTreeBws,
// perChMaxNVLSTreeBws).
var (
	ringLL128Max = [...]byNodes{
		Volta: {20, 20, 20}, Ampere: {20, 20, 20}, Hopper: {36.7, 36.7, 36.7}, Blackwell: {40, 40, 40},
	}
	treeLL128Max = [...]byNodes{
		Volta: {20, 20, 20}, Ampere: {20, 20, 20}, Hopper: {36.7, 36.7, 29}, Blackwell: {55.6, 31.67, 20},
	}
	treeMax = [...]byNodes{
		Volta: {26.5, 18.5, 10}, Ampere: {24, 23.6, 17.8}, Hopper: {38.7, 41.4, 36}, Blackwell: {70, 42.8, 24},
	}
	nvlsTreeMax = [...]byNodes{
		Volta: {26.5, 18.5, 10}, Ampere: {24, 23.6, 17.8}, Hopper: {0, 57.7, 45.5}, Blackwell: {0, 96, 80},
	}
)

// nvlsEfficiency is the share of the links' bandwidth that NVLS reaches (tuning.cc: nvlsEfficiency).
var nvlsEfficiency = [...]float64{Volta: 0, Ampere: 0, Hopper: 0.85, Blackwell: 0.74}

// treeCorrection is the share of its bandwidth that a tree reaches, by protocol and the power of two of the size, from
// 64 bytes to 256 MB (tuning.cc: treeCorrectionFactor).
var treeCorrection = [Protocols][]float64{
	LL:     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
	LL128:  {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
	Simple: {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}
