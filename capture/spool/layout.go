// Package spool reads the files that the shim writes: one per thread of a rank, in slots of 64 bytes. The layout is
// described in capture/shim/src/spool.h; layout.go has the same in Go.
package spool

// Sizes, magic and nulls of a spool file; see spool.h.
const (
	Magic       = "COMMQSP1"
	Version     = 6
	HeaderBytes = 4096
	SlotBytes   = 64
	Suffix      = ".cqs"
	// WindowsSuffix is that of the file with the last slots of a file whose records are packed.
	WindowsSuffix = ".cqw"
	// FolderPrefix begins the name of the folder that each commq capture makes for its records.
	FolderPrefix = "commq-spool-"
)

// Kind is the kind of a slot, CQ_END to CQ_BASE of spool.h.
type Kind uint8

// Kinds of slots.
const (
	End Kind = iota
	KindCall
	KindSide
	KindColl
	KindParts
	KindDone
	KindStart
	KindPre
	KindWide
	KindErr
	KindDef
	KindBlob
	KindHash
	KindRMA
	KindIO
	KindSum
	KindBase
)

// Flags of CALL and SIDE slots and of DONE entries.
const (
	FlagAnySource = 1 << iota
	FlagAnyTag
	FlagProcNull
	FlagRoot
	FlagInPlaceSend
	FlagInPlaceRecv
	FlagNoStatus
	FlagCancelled
	FlagNoError   // of a DONE entry of a call that failed: this request did not
	FlagTruncated // of such an entry: it took a message that was longer than its buffer
)

// TruncateError is the flag of an ERR slot whose class is MPI_ERR_TRUNCATE in the MPI library of the process. A receive
// that failed with it took its message.
const TruncateError = 1

// What a DEF slot defines.
const (
	DefComm     = 1
	DefCommName = 2
	DefType     = 3
	DefSite     = 4
	DefClock    = 5
	DefCommFree = 6
	DefModule   = 7
	DefLabel    = 8
	DefReturn   = 9
)

// What a WIDE slot holds.
const (
	WideRecvBytes = 1
	WideMessage   = 2
	WideParts     = 3
	WideLowest    = 4
)

// What a HASH slot has the hashes of, and which of its fields are set.
const (
	HashSent     = 0
	HashReceived = 1

	HasHash = 1
	HasSum  = 2
	HasHead = 4
)

// Hash algorithms of the header.
const (
	AlgorithmNone  = 0
	AlgorithmCRC64 = 1
	AlgorithmCRC32 = 2
)

// Sources of instructions and cycles in the header.
const (
	CountersNone = 0
	CountersPerf = 1
	CountersFake = 2
)

// Timers of the header. Ticks of the virtual one are picoseconds; virtual time begins at VirtualStart in each process.
const (
	TimerMonotonic = 0
	TimerTSC       = 1
	TimerCNTVCT    = 2
	TimerVirtual   = 3

	VirtualStart = 1_000_000
)

// Compute clocks of the header.
const (
	ClockNone = 0
	ClockWall = 1
	ClockCPU  = 2
)

// How a process ended, in the header.
const (
	EndedNot       = 0
	EndedFinalized = 1
	EndedAborted   = 2
)

// Header is the first HeaderBytes of a spool file, field by field as cq_header of spool.h.
type Header struct {
	Magic              [8]byte
	HeaderBytes        uint32
	SlotBytes          uint32
	Version            uint32
	Ended              uint32
	Rank               int32
	Size               int32
	Thread             int32
	ThreadLevel        int32
	Job                uint64
	Timer              uint32
	ComputeClock       uint32
	Clock0Tick         uint64
	Clock0Ns           int64
	Clock1Tick         uint64
	Clock1Ns           int64
	RealtimeNs         int64
	OffsetInitNs       int64
	OffsetInitErrorNs  int64
	OffsetInitAtNs     int64
	OffsetFinalNs      int64
	OffsetFinalErrorNs int64
	OffsetFinalAtNs    int64
	Dropped            uint64
	Polls              uint64
	Pid                int64
	Slots              uint64
	Limit              uint64
	Marks              uint64
	MarkNs             int64
	Hash               uint32
	HashVerify         uint32
	Stack              uint32
	Counters           uint32
	Sessions           uint32
	Limited            uint32
	Calls              uint64
	Summed             uint64
	Sums               uint32
	Check              uint32
	Packed             uint32
	Threads            uint32
	Host               [64]byte
	BootID             [64]byte
	MPILibrary         [512]byte
	Program            [256]byte
	Cores              [512]byte
	Blocks             uint64
	Pad                [2424]byte
}

// Call is a CALL slot: one MPI call; cq_call of spool.h tells which fields a call uses.
type Call struct {
	Call      uint16
	Kind      Kind
	Flags     uint8
	ComputeNs uint32
	T0        uint64
	T1        uint64
	Comm      int32
	Peer      int32
	Tag       int32
	Dtype     int32
	Count     int64
	Buf       uint64
	Req       uint32
	Site      uint32
}

// Side is a SIDE slot: the receive side of a Sendrecv.
type Side struct {
	Zero  uint16
	Kind  Kind
	Flags uint8
	Dtype int32
	Peer  int32
	Tag   int32
	Count int64
	Bytes int64
	Buf   uint64
	Spare [3]uint64
}

// Coll is a COLL slot: the arguments of a collective that do not fit into its CALL slot.
type Coll struct {
	Op       uint16
	Kind     Kind
	Flags    uint8
	Rdtype   int32
	Instance uint64
	Rcount   int64
	Sbytes   int64
	Rbytes   int64
	Rbuf     uint64
	Spare    [2]uint64
}

// Part is one peer's bytes in a PARTS slot.
type Part struct {
	Peer      int32
	Spare     uint32
	SendBytes int64
	RecvBytes int64
}

// Parts is a PARTS slot.
type Parts struct {
	N     uint16
	Kind  Kind
	Flags uint8
	Spare [3]uint32
	Part  [2]Part
}

// DoneEntry is one completed request in a DONE slot.
type DoneEntry struct {
	Req    uint32
	Source int32
	Tag    int32
	Flags  uint32
	Bytes  int64
}

// Done is a DONE slot.
type Done struct {
	N     uint16
	Kind  Kind
	Flags uint8
	Spare [3]uint32
	Done  [2]DoneEntry
}

// Start is a START slot: persistent requests that were started.
type Start struct {
	N     uint16
	Kind  Kind
	Flags uint8
	Spare uint32
	Start [7]struct{ Req, Template uint32 }
}

// Pre is a PRE slot: compute time and failed polls before the call.
type Pre struct {
	Zero         uint16
	Kind         Kind
	Flags        uint8
	Spare        uint32
	ComputeNs    uint64
	Polls        uint64
	PollTicks    uint64
	Instructions int64
	Cycles       int64
	Spare2       [2]uint64
}

// Wide is a WIDE slot: a value that did not fit 32 bits.
type Wide struct {
	What   uint16
	Kind   Kind
	Flags  uint8
	Spare  uint32
	Value  int64
	Spare2 [6]uint64
}

// Err is an ERR slot: the call returned an error.
type Err struct {
	Zero       uint16
	Kind       Kind
	Flags      uint8
	ErrorClass int32
	Spare      [7]uint64
}

// Hashes is a HASH slot: hashes of a payload.
type Hashes struct {
	What  uint16
	Kind  Kind
	Flags uint8
	Req   uint32
	Hash  uint64
	Sum   uint64
	Head  uint64
	Bytes int64
	Spare [3]uint64
}

// RMA is an RMA slot: the arguments of an RMA call that do not fit into its CALL slot.
type RMA struct {
	Op     uint16
	Kind   Kind
	Flags  uint8
	Tdtype int32
	Window int32
	Rdtype int32
	Disp   int64
	Tcount int64
	Rcount int64
	Obytes int64
	Tbytes int64
	Rbuf   uint64
}

// IO is an IO slot: the arguments of an I/O call that do not fit into its CALL slot.
type IO struct {
	Zero   uint16
	Kind   Kind
	Flags  uint8
	File   int32
	Offset int64
	Bytes  int64
	Spare  [5]uint64
}

// Sum is a SUM slot: checksums of the N slots from From on, which lie before it.
type Sum struct {
	Zero   uint16
	Kind   Kind
	Flags  uint8
	Number uint32
	From   uint64
	N      uint64
	CRC    [3]uint32
	Check  uint32
	Spare  [3]uint64
}

// WindowBytes is the size of each of the two windows of a file whose records are packed.
const WindowBytes = 512 << 10

// BlockMagic begins a block of packed slots.
const BlockMagic = "CQB1"

// Base is the first slot of a window. Number is that of the slot behind it, plus 1; 0 if none is there.
type Base struct {
	Zero   uint16
	Kind   Kind
	Flags  uint8
	Spare  uint32
	Number uint64
	Spare2 [6]uint64
}

// Block stands before the bytes of N packed slots, the first of which has number First.
type Block struct {
	Magic [4]byte
	// Scale is the ns of a tick, times 2^20.
	Scale uint32
	First uint64
	N     uint32
	// Bytes is how many bytes follow, CRC their CRC-32C, Check that of the fields before it.
	Bytes uint32
	CRC   uint32
	Check uint32
}

// Def is a DEF slot; its payload follows in BLOB slots.
type Def struct {
	What  uint16
	Kind  Kind
	Flags uint8
	Bytes uint32
	ID    int64
	Spare [6]uint64
}

// Blob is a BLOB slot: up to 56 bytes of a definition's payload.
type Blob struct {
	N     uint16
	Kind  Kind
	Flags uint8
	Spare uint32
	Data  [56]byte
}

// CommDef is the fixed part of the payload of DEF COMM; int32 lists follow it.
type CommDef struct {
	Kind              int32
	Parent            int32
	Instance          uint64
	Size              int32
	Rank              int32
	LeaderWorld       int32
	RemoteSize        int32
	RemoteLeaderWorld int32
	Key               int32
	Members           int32
	RemoteMembers     int32
	Dims              int32
	Edges             int32
}

// TypeDef is the fixed part of the payload of DEF TYPE; the name follows it.
type TypeDef struct {
	Bytes    int64
	Extent   int64
	Combiner int32
	Spare    int32
}

// ModuleDef is the fixed part of the payload of DEF MODULE; the build id and the path follow it.
type ModuleDef struct {
	Low     uint64
	High    uint64
	Bias    uint64
	IDBytes int32
	Skip    int32
}
