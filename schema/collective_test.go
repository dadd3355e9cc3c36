package schema

import "testing"

// P = 5 ranks; n = 7 bytes is the call's own argument; sums of v-variants are 30 sent and 44 received, of which 3 and 4
// are with itself. In place, an argument is null.
func TestCollectiveBytesByRole(t *testing.T) {
	const null, p, n = NullInt64, 5, 7
	both := CollectiveArgs{Send: n, Recv: n}
	root := CollectiveArgs{Send: n, Recv: n, Root: true}
	sends, receives := CollectiveArgs{Send: n, Recv: null}, CollectiveArgs{Send: null, Recv: n}
	rootSends, rootReceives := CollectiveArgs{Send: n, Recv: null, Root: true},
		CollectiveArgs{Send: null, Recv: n, Root: true}
	vector := CollectiveArgs{Send: 30, Recv: 44, OwnSend: 3, OwnRecv: 4}
	vectorRoot := CollectiveArgs{Send: 30, Recv: 44, OwnSend: 3, OwnRecv: 4, Root: true}
	inPlaceSend := CollectiveArgs{Send: null, Recv: 44, OwnRecv: 4}
	inPlaceSendRoot := CollectiveArgs{Send: null, Recv: 44, OwnRecv: 4, Root: true}
	inPlaceRecvRoot := CollectiveArgs{Send: 30, Recv: null, OwnSend: 3, Root: true}
	none := CollectiveArgs{Send: null, Recv: null}
	for _, c := range []struct {
		name       string
		call, i    CallID
		args       CollectiveArgs
		send, recv int64
	}{
		{"", CallBarrier, CallIbarrier, none, 0, 0},
		{"root", CallBcast, CallIbcast, rootSends, n, 0},
		{"other", CallBcast, CallIbcast, receives, 0, n},
		{"other, one argument", CallBcast, CallIbcast, sends, 0, n},
		{"root", CallReduce, CallIreduce, root, n, n},
		{"root in place", CallReduce, CallIreduce, rootReceives, n, n},
		{"other", CallReduce, CallIreduce, sends, n, 0},
		{"", CallAllreduce, CallIallreduce, both, n, n},
		{"in place", CallAllreduce, CallIallreduce, receives, n, n},
		{"", CallScan, CallIscan, both, n, n},
		{"in place", CallScan, CallIscan, receives, n, n},
		{"", CallExscan, CallIexscan, both, n, n},
		{"in place", CallExscan, CallIexscan, receives, n, n},
		{"root", CallGather, CallIgather, root, n, 35},
		{"root in place", CallGather, CallIgather, rootReceives, n, 35},
		{"other", CallGather, CallIgather, sends, n, 0},
		{"root", CallGatherv, CallIgatherv, vectorRoot, 30, 44},
		{"root in place", CallGatherv, CallIgatherv, inPlaceSendRoot, 4, 44},
		{"other", CallGatherv, CallIgatherv, sends, n, 0},
		{"root", CallScatter, CallIscatter, root, 35, n},
		{"root in place", CallScatter, CallIscatter, rootSends, 35, n},
		{"other", CallScatter, CallIscatter, receives, 0, n},
		{"root", CallScatterv, CallIscatterv, vectorRoot, 30, 44},
		{"root in place", CallScatterv, CallIscatterv, inPlaceRecvRoot, 30, 3},
		{"other", CallScatterv, CallIscatterv, receives, 0, n},
		{"", CallAllgather, CallIallgather, both, n, 35},
		{"in place", CallAllgather, CallIallgather, receives, n, 35},
		{"", CallAllgatherv, CallIallgatherv, vector, 30, 44},
		{"in place", CallAllgatherv, CallIallgatherv, inPlaceSend, 4, 44},
		{"", CallAlltoall, CallIalltoall, both, 35, 35},
		{"in place", CallAlltoall, CallIalltoall, receives, 35, 35},
		{"", CallAlltoallv, CallIalltoallv, vector, 30, 44},
		{"in place", CallAlltoallv, CallIalltoallv, inPlaceSend, 44, 44},
		{"", CallAlltoallw, CallIalltoallw, vector, 30, 44},
		{"in place", CallAlltoallw, CallIalltoallw, inPlaceSend, 44, 44},
		{"", CallReduceScatter, CallIreduceScatter, CollectiveArgs{Send: 30, Recv: 4}, 30, 4},
		{"", CallReduceScatterBlock, CallIreduceScatterBlock, both, 35, n},
		{"in place", CallReduceScatterBlock, CallIreduceScatterBlock, sends, 35, n},
		// On an intercommunicator the root is with the other group: it does not exchange anything with itself.
		{"inter root", CallBcast, CallIbcast, CollectiveArgs{Send: n, Recv: null, Root: true, Inter: true}, n, 0},
		{"inter aside", CallBcast, CallIbcast, CollectiveArgs{Send: n, Recv: n, Aside: true, Inter: true}, 0, 0},
		{"inter root", CallReduce, CallIreduce, CollectiveArgs{Send: null, Recv: n, Root: true, Inter: true}, 0, n},
		{"inter root", CallGather, CallIgather, CollectiveArgs{Send: null, Recv: n, Root: true, Inter: true}, 0, 35},
		{"inter root", CallScatter, CallIscatter, CollectiveArgs{Send: n, Recv: null, Root: true, Inter: true}, 35, 0},
		{"inter other", CallGather, CallIgather, CollectiveArgs{Send: n, Recv: null, Inter: true}, n, 0},
		{"not a collective", CallSend, CallIsend, both, null, null},
	} {
		c.args.Peers, c.args.Group = p, p
		for _, call := range []CallID{c.call, c.i} {
			if send, recv := CollectiveBytes(call, c.args); send != c.send || recv != c.recv {
				t.Errorf("%v %s: sends %d, receives %d; want %d and %d", call, c.name, send, recv, c.send, c.recv)
			}
		}
	}
}

func TestOperationOfEveryForm(t *testing.T) {
	for call, want := range map[CallID]CallID{
		CallIbcast: CallBcast, CallBcastInitC: CallBcast, CallMPIXBcastInit: CallBcast, CallIbarrier: CallBarrier,
		CallIneighborAlltoallwC: CallNeighborAlltoallw, CallIreduceScatterBlock: CallReduceScatterBlock, CallSend: 0,
		CallSendInit: 0, CallCommDup: 0, -1: 0,
	} {
		if got := call.Operation(); got != want {
			t.Errorf("the operation of call %d is %v, want %v", call, got, want)
		}
	}
	if send, recv := CollectiveBytes(CallMPIXNeighborAllgatherInit,
		CollectiveArgs{Peers: 5, Send: 18, Recv: 17}); send != 18 || recv != 17 {
		t.Errorf("a neighbourhood allgather sends %d, receives %d; want the sums 18 and 17", send, recv)
	}
	if send, _ := CollectiveBytes(CallScatter, CollectiveArgs{Peers: 5, Root: true, Send: 1 << 62}); send != NullInt64 {
		t.Errorf("5 x 2^62 bytes are %d, want null", send)
	}
}
