#!/bin/sh
# Owns: certificates of clients, good and bad, in the directory that is given: STEM.crt, STEM.key;
# root.crt signs them, root.crl revokes one.
set -e
mkdir -p "$1/new"
cd "$1"
key() { openssl req "$@" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -utf8 2>/dev/null; }
ca() {
    key -x509 -keyout "$1.key" -out "$1.crt" -days 3650 -subj "$2" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
}
# sub STEM ISSUER SUBJECT EXTENSIONS [START END]
sub() {
    key -keyout "$1.key" -out "$1.csr" -subj "$3"
    printf "$4" > "$1.ext"
    openssl ca -batch -config ca.cnf -in "$1.csr" -cert "$2.crt" -keyfile "$2.key" -extfile "$1.ext" \
        -startdate "${5:-20250101000000Z}" -enddate "${6:-20400101000000Z}" -notext -out "$1.crt" 2>/dev/null
}
: > index
echo 1234ABCDEF > serial
echo 01 > crlnumber
cat > ca.cnf <<X
[ca]
default_ca=d
[d]
database=index
default_md=sha256
default_crl_days=30
serial=serial
crlnumber=crlnumber
new_certs_dir=new
policy=p
unique_subject=no
preserve=yes
[p]
C=optional
O=optional
emailAddress=optional
CN=supplied
X
LEAF='basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n'
CA='basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n'
ca root '/O=Bolide/CN=Root'
ca other '/CN=Other'
sub mid root '/CN=Mid' "$CA"
sub mid2 mid '/CN=Mid2' "$CA"
sub good root '/C=DE/O=A, B;C/O= lead/emailAddress=x@a.test/CN=Grün <x>"q' "$LEAF"
sub expired root '/CN=expired' "$LEAF" 20200101000000Z 20210101000000Z
sub future root '/CN=future' "$LEAF" 20900101000000Z 20910101000000Z
sub wrong other '/CN=wrong' "$LEAF"
sub late other '/CN=late' "$LEAF" 20200101000000Z 20210101000000Z
sub revoked root '/CN=revoked' "$LEAF"
sub server root '/CN=server' 'basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n'
sub plain root '/CN=plain' 'basicConstraints=CA:FALSE\n'
sub one mid '/CN=one' "$LEAF"
sub two mid2 '/CN=two' "$LEAF"
cat mid.crt >> one.crt
cat mid2.crt mid.crt >> two.crt
cat wrong.crt other.crt > chain.crt
cp wrong.key chain.key
sub netscape root '/CN=netscape' 'basicConstraints=CA:FALSE\nnsCertType=server\n'
sub mail root '/CN=Mail' "${CA}nameConstraints=permitted;email:b.test\n"
sub mailed mail '/CN=mailed/emailAddress=x@a.test' "$LEAF"
cat mail.crt >> mailed.crt
sub hosts root '/CN=Hosts' "${CA}nameConstraints=permitted;DNS:b.test\n"
sub hosted hosts '/CN=a.test' "$LEAF"
cat hosts.crt >> hosted.crt
key -x509 -keyout self.key -out self.crt -days 100 -subj /CN=self
key -x509 -keyout pin.key -out pin.crt -days 100 -subj /CN=pin -addext basicConstraints=critical,CA:FALSE
sub forged pin '/CN=forged' "$LEAF"
key -x509 -keyout any.key -out any.crt -days 100 -subj /CN=any -addext extendedKeyUsage=anyExtendedKeyUsage
key -x509 -keyout short.key -out short.crt -days 100 -subj /CN=short \
    -addext basicConstraints=critical,CA:TRUE,pathlen:0 -addext keyUsage=critical,keyCertSign
sub short2 short '/CN=Short2' "$CA"
sub shorted short2 '/CN=shorted' "$LEAF"
cat short2.crt >> shorted.crt
key -x509 -keyout serverca.key -out serverca.crt -days 100 -subj /CN=serverca \
    -addext basicConstraints=critical,CA:TRUE -addext extendedKeyUsage=serverAuth
sub served serverca '/CN=served' "$LEAF"
cat pin.crt any.crt short.crt serverca.crt > pins.crt
openssl ca -config ca.cnf -cert root.crt -keyfile root.key -revoke revoked.crt 2>/dev/null
openssl ca -config ca.cnf -cert root.crt -keyfile root.key -gencrl -out root.crl 2>/dev/null
# Version 1, and authorities as leaves.
old() {
    key -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
    openssl x509 -req -in "$1.csr" -CA "$2.crt" -CAkey "$2.key" -set_serial "$3" -days 3650 \
        -out "$1.crt" 2>/dev/null
}
key -keyout oldroot.key -out oldroot.csr -subj /CN=oldroot
openssl x509 -req -in oldroot.csr -signkey oldroot.key -days 3650 -out oldroot.crt 2>/dev/null
old oldleaf root 701
old oldgone root 702
old oldmid root 703
old below oldmid 704
cat oldmid.crt >> below.crt
old oldown oldroot 705
sub authority mid '/CN=authority' 'basicConstraints=CA:TRUE\n'
sub signer mid '/CN=signer' 'basicConstraints=CA:TRUE\nkeyUsage=digitalSignature,keyCertSign\n'
sub mute mid '/CN=mute' "$CA"
cat root.crt mid.crt oldroot.crt > olds.crt
grep -v crlnumber ca.cnf > lists.cnf
openssl ca -config lists.cnf -cert mid.crt -keyfile mid.key -gencrl -out mid1.crl 2>/dev/null
openssl ca -config lists.cnf -cert root.crt -keyfile root.key -revoke oldgone.crt 2>/dev/null
openssl ca -config lists.cnf -cert root.crt -keyfile root.key -gencrl -out root1.crl 2>/dev/null
openssl ca -config lists.cnf -cert root.crt -keyfile root.key -revoke mid.crt 2>/dev/null
openssl ca -config lists.cnf -cert root.crt -keyfile root.key -gencrl -out nomid1.crl 2>/dev/null
(echo before; cat mid1.crl; echo between; cat root1.crl; echo behind) > both1.crl
# For servers: behind one between, keys that need a password, answers of the authority, parameters.
sub deep mid '/CN=localhost' 'basicConstraints=CA:FALSE\n'
cat mid.crt >> deep.crt
seal() {
    echo "word of $1" > "$1.words"
    openssl ec -in "$1.key" -aes256 -passout "file:$1.words" -out "$1.sealed" 2>/dev/null
}
seal good
seal plain
openssl ca -config ca.cnf -cert other.crt -keyfile other.key -gencrl -out other.crl 2>/dev/null
serial=$(openssl x509 -in plain.crt -noout -serial | cut -d= -f2)
for status in V R; do
    printf '%s\t400101000000Z\t%s\t%s\tunknown\t/CN=plain\n' $status \
        "$([ $status = V ] || echo 260101000000Z)" "$serial" > $status.index
    openssl ocsp -index $status.index -rsigner root.crt -rkey root.key -CA root.crt -issuer root.crt \
        -ndays 30 -cert plain.crt -respout $status.der >/dev/null 2>&1
done
openssl pkey -in good.key -outform DER -out good.der
cat good.crt good.key > good.both
for size in 2048 3072; do
    openssl genpkey -genparam -algorithm DH -pkeyopt "group:ffdhe$size" -out "dh$size.pem" 2>/dev/null
done
openssl genpkey -genparam -algorithm DHX -pkeyopt dh_rfc5114:2 -out dhx.pem 2>/dev/null
openssl rand 80 > one.ticket
openssl rand 80 > two.ticket
openssl rand 64 > one.quic
openssl rand 64 > two.quic
