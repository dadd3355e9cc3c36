package ingest

import "github.com/commq/commq/schema"

// op says how the slots of a call are read; spool.h lists the fields that each call uses.
type op uint8

const (
	opOther op = iota
	opSend
	opIsend
	opSendInit
	opRecv
	opIrecv
	opRecvInit
	opSendrecv
	opIsendrecv
	opProbe
	opMprobe
	opMrecv
	opImrecv
	opComplete
	opRequestFree
	opRequestStatus
	opStart
	opStartall
	opCollective
	opIcollective
	opCollectiveInit
	opCommNew
	opCommIdup
	opRMA
	opRMARequest
	opWin
	opWinNew
	opFile
	opFileOpen
	opFileDelete
	opTransfer
	opTransferStart // nonblocking, and the begin of a split collective
	opTransferEnd
	opCommUse // comm_free, comm_set_name: a call with a communicator
	opReady   // pready, parrived: a call on some partitions of a started request
	opControl // MPI_Pcontrol
	opSelf    // commq_send_to_self
)

// recorderOps maps each recorder of the shim to how its slots are read.
func recorderOps() map[string]op {
	return map[string]op{
		"send": opSend, "isend": opIsend, "send_init": opSendInit,
		"recv": opRecv, "irecv": opIrecv, "recv_init": opRecvInit,
		"sendrecv": opSendrecv, "isendrecv": opIsendrecv,
		"probe": opProbe, "iprobe": opProbe, "mprobe": opMprobe, "improbe": opMprobe, "mrecv": opMrecv,
		"imrecv": opImrecv,
		"wait":   opComplete, "waitall": opComplete, "waitany": opComplete, "waitsome": opComplete,
		"test": opComplete, "testall": opComplete, "testany": opComplete, "testsome": opComplete,
		"request_free": opRequestFree, "cancel": opRequestStatus, "request_get_status": opRequestStatus,
		"start": opStart, "startall": opStartall,
		"collective": opCollective, "icollective": opIcollective, "collective_init": opCollectiveInit,
		"psend_init": opSendInit, "precv_init": opRecvInit, "pready": opReady, "pready_range": opReady,
		"pready_list": opReady, "parrived": opReady,
		"comm_connect": opCommNew, "comm_from_group": opCommNew, "spawn": opCommNew, "pcontrol": opControl,
		"comm_new": opCommNew, "comm_idup": opCommIdup, "comm_free": opCommUse, "comm_set_name": opCommUse,
		"self": opSelf,
		"rma":  opRMA, "rma_request": opRMARequest, "win_new": opWinNew,
		"win_sync": opWin, "win_target": opWin, "win_group": opWin, "win_lock": opWin, "win_test": opWin,
		"win_free":  opWin,
		"file_open": opFileOpen, "file_close": opFile, "file_plain": opFile, "file_delete": opFileDelete,
		"file_rw": opTransfer, "file_irw": opTransferStart, "file_begin": opTransferStart, "file_end": opTransferEnd,
	}
}

// ops is indexed by call id. It is made once and only read.
var ops = func() []op {
	byRecorder := recorderOps()
	t := make([]op, len(schema.Calls))
	for i := range schema.Calls {
		t[i] = byRecorder[schema.Calls[i].Recorder]
	}
	return t
}()

// issues reports whether the req field of the slot is a new serial number.
func (o op) issues() bool {
	switch o {
	case opIsend, opSendInit, opIrecv, opRecvInit, opIsendrecv, opMprobe, opImrecv, opStart, opIcollective,
		opCollectiveInit, opCommIdup,
		opRMARequest, opTransferStart:
		return true
	}
	return false
}
