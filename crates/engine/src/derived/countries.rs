//! Converts two-letter to three-letter country codes (ISO 3166-1, and XK for Kosovo).

/// Two-letter and three-letter codes, sorted by the former, with blanks between.
const CODES: &str = "\
    ADAND AEARE AFAFG AGATG AIAIA ALALB AMARM AOAGO AQATA ARARG ASASM ATAUT AUAUS AWABW \
    AXALA AZAZE BABIH BBBRB BDBGD BEBEL BFBFA BGBGR BHBHR BIBDI BJBEN BLBLM BMBMU BNBRN \
    BOBOL BQBES BRBRA BSBHS BTBTN BVBVT BWBWA BYBLR BZBLZ CACAN CCCCK CDCOD CFCAF CGCOG \
    CHCHE CICIV CKCOK CLCHL CMCMR CNCHN COCOL CRCRI CUCUB CVCPV CWCUW CXCXR CYCYP CZCZE \
    DEDEU DJDJI DKDNK DMDMA DODOM DZDZA ECECU EEEST EGEGY EHESH ERERI ESESP ETETH FIFIN \
    FJFJI FKFLK FMFSM FOFRO FRFRA GAGAB GBGBR GDGRD GEGEO GFGUF GGGGY GHGHA GIGIB GLGRL \
    GMGMB GNGIN GPGLP GQGNQ GRGRC GSSGS GTGTM GUGUM GWGNB GYGUY HKHKG HMHMD HNHND HRHRV \
    HTHTI HUHUN IDIDN IEIRL ILISR IMIMN ININD IOIOT IQIRQ IRIRN ISISL ITITA JEJEY JMJAM \
    JOJOR JPJPN KEKEN KGKGZ KHKHM KIKIR KMCOM KNKNA KPPRK KRKOR KWKWT KYCYM KZKAZ LALAO \
    LBLBN LCLCA LILIE LKLKA LRLBR LSLSO LTLTU LULUX LVLVA LYLBY MAMAR MCMCO MDMDA MEMNE \
    MFMAF MGMDG MHMHL MKMKD MLMLI MMMMR MNMNG MOMAC MPMNP MQMTQ MRMRT MSMSR MTMLT MUMUS \
    MVMDV MWMWI MXMEX MYMYS MZMOZ NANAM NCNCL NENER NFNFK NGNGA NINIC NLNLD NONOR NPNPL \
    NRNRU NUNIU NZNZL OMOMN PAPAN PEPER PFPYF PGPNG PHPHL PKPAK PLPOL PMSPM PNPCN PRPRI \
    PSPSE PTPRT PWPLW PYPRY QAQAT REREU ROROU RSSRB RURUS RWRWA SASAU SBSLB SCSYC SDSDN \
    SESWE SGSGP SHSHN SISVN SJSJM SKSVK SLSLE SMSMR SNSEN SOSOM SRSUR SSSSD STSTP SVSLV \
    SXSXM SYSYR SZSWZ TCTCA TDTCD TFATF TGTGO THTHA TJTJK TKTKL TLTLS TMTKM TNTUN TOTON \
    TRTUR TTTTO TVTUV TWTWN TZTZA UAUKR UGUGA UMUMI USUSA UYURY UZUZB VAVAT VCVCT VEVEN \
    VGVGB VIVIR VNVNM VUVUT WFWLF WSWSM XKXKX YEYEM YTMYT ZAZAF ZMZMB ZWZWE";

/// The three-letter code of a two-letter one.
pub(super) fn three_letters(two: &[u8]) -> Option<&'static str> {
    let &[first, second] = two else { return None };
    let at = |index: usize| &CODES.as_bytes()[index * ROW..];
    let (mut low, mut high) = (0, CODES.len().div_ceil(ROW));
    while low < high {
        let middle = (low + high) / 2;
        match at(middle)[..2].cmp(&[first, second]) {
            std::cmp::Ordering::Equal => return CODES.get(middle * ROW + 2..middle * ROW + 5),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// Bytes per country.
const ROW: usize = 6;

#[cfg(test)]
mod tests {
    use super::{CODES, three_letters};

    #[test]
    fn every_country_of_the_table_is_found_by_its_two_letters() {
        let rows: Vec<&str> = CODES.split(' ').collect();
        assert_eq!(rows.len(), 250);
        assert!(rows.is_sorted() && rows.iter().all(|row| row.len() == 5));
        for row in rows {
            assert_eq!(three_letters(&row.as_bytes()[..2]), Some(&row[2..]), "{row}");
        }
        for unknown in ["", "A", "AA", "ZZ", "de", "DEU"] {
            assert_eq!(three_letters(unknown.as_bytes()), None, "{unknown}");
        }
        assert_eq!(three_letters(b"DE"), Some("DEU"));
    }
}
