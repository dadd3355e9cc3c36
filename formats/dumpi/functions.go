package dumpi

import (
	_ "embed"
	"strings"

	"github.com/commq/commq/schema"
)

// functionsText has the layouts of all records; its first lines explain them.
//
//go:embed functions.txt
var functionsText string

// Numbers that DUMPI gives to what is no function of MPI.
const (
	allFunctions                             = 290 // of functions
	functionEnter, functionExit, endOfStream = allFunctions + 1, allFunctions + 2, allFunctions + 3
)

// field is a parameter by its name.
type field uint8

// The parameters whose values matter. unused stands for all others.
const (
	unused field = iota
	fCount
	fDatatype
	fDest
	fSource
	fTag
	fComm
	fStatuses
	fRequest
	fRequests
	fIndex
	fIndices
	fFlag
	fOutcount
	fSendcount
	fSendtype
	fSendtag
	fRecvcount
	fRecvtype
	fRecvtag
	fRoot
	fCommrank
	fSendcounts
	fRecvcounts
	fSendtypes
	fRecvtypes
	fOp
	fOldcomm
	fNewcomm
	fColor
	fKey
	fGroup
	fGroup1
	fGroup2
	fNewgroup
	fRanks
	fRanges
	fLocalcomm
	fLocalleader
	fRemotecomm
	fRemoteleader
	fHigh
	fDims
	fPeriods
	fRemainDims
	fNodes
	fOldtype
	fNewtype
	fOldtypes
	fBlocklength
	fBlocklengths
	fSize
	fSubsizes
	fWin
	fFile
	fFilename
	fTargetrank
	fOrigincount
	fOrigintype
	fTargetcount
	fTargettype
	fLocktype
	fOldcommrank
	fieldCount
)

var fieldNames = [fieldCount]string{"", "count", "datatype", "dest", "source", "tag", "comm", "statuses", "request",
	"requests", "index", "indices", "flag", "outcount", "sendcount", "sendtype", "sendtag", "recvcount", "recvtype",
	"recvtag", "root", "commrank", "sendcounts", "recvcounts", "sendtypes", "recvtypes", "op", "oldcomm", "newcomm",
	"color", "key", "group", "group1", "group2", "newgroup", "ranks", "ranges", "localcomm", "localleader",
	"remotecomm", "remoteleader", "high", "dims", "periods", "remain_dims", "nodes", "oldtype", "newtype", "oldtypes",
	"blocklength", "blocklengths", "size", "subsizes", "win", "file", "filename", "targetrank", "origincount",
	"origintype", "targetcount", "targettype", "locktype", "oldcommrank"}

// part is a part of a record.
type part struct {
	field  field
	kind   byte // as in functions.txt
	atRoot bool
}

// function is a function of DUMPI.
type function struct {
	name  string
	call  schema.CallID // 0: none that commq knows by that name
	parts []part
	none  bool // DUMPI writes no records of it
}

// functions are those of functions.txt, by number.
var functions = parseFunctions()

func parseFunctions() (all []function) {
	byName := map[string]field{}
	for i, name := range fieldNames {
		byName[name] = field(i)
	}
	for line := range strings.Lines(functionsText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		f := function{name: words[0]}
		f.call, _ = schema.CallByName(strings.Replace(f.name, "MPIO_", "MPI_", 1))
		for _, w := range words[1:] {
			name, kind, _ := strings.Cut(w, ":")
			if kind == "" {
				f.none = true
				break
			}
			f.parts = append(f.parts, part{byName[name], kind[0], strings.HasSuffix(kind, "@")})
		}
		all = append(all, f)
	}
	return all
}
