#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "cluster/link.h"

namespace headrace::cluster {

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using TestKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using TestCertificate = std::unique_ptr<X509, Freed<X509_free>>;

/// For a day; signed by `issuer`, or by itself.
inline TestCertificate make_certificate(const char* name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  TestCertificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), issuer == nullptr ? 1 : 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86400);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), issuer == nullptr ? subject : X509_get_subject_name(issuer));
  if (issuer == nullptr) {
    const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> authority(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE"));
    X509_add_ext(certificate.get(), authority.get(), -1);
  }
  EXPECT_GT(X509_sign(certificate.get(), issuer_key, EVP_sha256()), 0);
  return certificate;
}

inline void write_key(const std::string& path, EVP_PKEY* key) {
  const std::unique_ptr<FILE, Freed<fclose>> out(fopen(path.c_str(), "w"));
  ASSERT_EQ(PEM_write_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr), 1);
}
inline void write_certificate(const std::string& path, X509* certificate) {
  const std::unique_ptr<FILE, Freed<fclose>> out(fopen(path.c_str(), "w"));
  ASSERT_EQ(PEM_write_X509(out.get(), certificate), 1);
}

/// Files of an authority and of a machine whose certificate it signed; `name` sets apart those of one test.
inline TlsFiles make_tls_files(const std::string& name) {
  const std::string base = testing::TempDir() + "cluster_tls_" + name;
  TlsFiles files{.certificate = base + ".pem", .key = base + ".key", .authority = base + ".ca"};
  const TestKey authority_key(EVP_EC_gen("P-256"));
  const TestKey key(EVP_EC_gen("P-256"));
  const TestCertificate authority = make_certificate(name.c_str(), authority_key.get(), nullptr, authority_key.get());
  const TestCertificate certificate = make_certificate("node", key.get(), authority.get(), authority_key.get());
  write_certificate(files.authority, authority.get());
  write_certificate(files.certificate, certificate.get());
  write_key(files.key, key.get());
  return files;
}

}  // namespace headrace::cluster
