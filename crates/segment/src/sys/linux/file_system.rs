//! The kind of file system a file lives in, from the magic number of the file system.

use std::fs::File;
use std::io;

use nix::sys::statfs::fstatfs;

use crate::sys::FileSystem;

pub fn file_system(file: &File) -> io::Result<FileSystem> {
    // The numbers are 32 bits wide; the field is wider and signed on some systems.
    Ok(classify(fstatfs(file)?.filesystem_type().0 as u32))
}

/// Classifies numbers from the kernel's `magic.h` and, for file systems that are not in it, from coreutils' `stat`.
///
/// FUSE counts as remote because it cannot be distinguished from sshfs. Cluster file systems count as remote
/// because another machine may map the same file.
fn classify(magic: u32) -> FileSystem {
    let name = match magic {
        0x0102_1994 | 0x8584_58f6 | 0x9584_58f6 => return FileSystem::Volatile,
        // Maps the file of the layer below, and so drops the reference to its own description (see liveness.rs).
        0x794c_7630 => return FileSystem::Lossy("overlayfs"),
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x6573_5546 => "FUSE (possibly remote, such as sshfs)",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x786f_4256 => "VirtualBox shared folder",
        0xbacb_acbc => "VMware shared folder",
        0x7c7c_6673 => "Parallels shared folder",
        0x1983_0326 => "BeeGFS",
        0x2003_0528 => "OrangeFS",
        0xaad7_aaea => "PanFS",
        0xbeef_dead => "StorNext",
        0x6163_6673 => "ACFS",
        0x0131_11a8 => "IBRIX",
        _ => return FileSystem::Local,
    };
    FileSystem::Network(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_file_systems_are_volatile() {
        assert_eq!(classify(nix::libc::TMPFS_MAGIC as u32), FileSystem::Volatile);
        assert_eq!(classify(0x8584_58f6), FileSystem::Volatile);
    }

    #[test]
    fn disks_are_local() {
        for magic in [nix::libc::EXT4_SUPER_MAGIC, nix::libc::XFS_SUPER_MAGIC, nix::libc::BTRFS_SUPER_MAGIC] {
            assert_eq!(classify(magic as u32), FileSystem::Local);
        }
    }

    #[test]
    fn overlayfs_loses_locks() {
        let overlay = nix::libc::OVERLAYFS_SUPER_MAGIC as u32;
        assert_eq!(classify(overlay), FileSystem::Lossy("overlayfs"));
    }

    #[test]
    fn remote_file_systems_are_network() {
        for magic in [
            nix::libc::NFS_SUPER_MAGIC,
            nix::libc::SMB_SUPER_MAGIC,
            nix::libc::AFS_SUPER_MAGIC,
            nix::libc::CODA_SUPER_MAGIC,
            nix::libc::NCP_SUPER_MAGIC,
            nix::libc::FUSE_SUPER_MAGIC,
            nix::libc::OCFS2_SUPER_MAGIC,
        ] {
            assert!(matches!(classify(magic as u32), FileSystem::Network(_)), "{magic:x}");
        }
        assert_eq!(classify(0xff53_4d42), FileSystem::Network("CIFS"));
        assert_eq!(classify(0x0102_1997), FileSystem::Network("9P"));
    }

    #[test]
    fn an_open_file_has_a_file_system() {
        assert!(file_system(&File::open("/proc/self/stat").unwrap()).is_ok());
    }
}
