// Constants of the elementary functions in lanes-inl.h, highest power first.
#pragma once

#include <array>
#include <cstdint>

namespace brigade::random {

// ln(1 + f) for 1 + f in [sqrt(1/2), sqrt(2)); fdlibm's, in double (e_log.c) and float (e_logf.c).
template <class T>
struct LogCoefficients;

template <>
struct LogCoefficients<float> {
  static constexpr int kMantissaBits = 23;
  static constexpr std::int32_t kSqrtHalf = 0x3f3504f3;
  static constexpr float kHalf = 0.5f;
  static constexpr float kLn2High = 6.9313812256e-01f;  // its last bits are 0: exact times any exponent
  static constexpr float kLn2Low = 9.0580006145e-06f;
  static constexpr std::array<float, 4> kSeries = {0.24279078841f, 0.28498786688f, 0.40000972152f, 0.66666662693f};
};

template <>
struct LogCoefficients<double> {
  static constexpr int kMantissaBits = 52;
  static constexpr std::int64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
  static constexpr double kHalf = 0.5;
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr std::array<double, 7> kSeries = {
      1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
      2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01};
};

// erfinv(x) = x * p(w) with w = -log(1 - x^2): p in w - offset near the centre, in sqrt(w) - offset in the tails.
template <class T>
struct ErfinvCoefficients;

template <>
struct ErfinvCoefficients<float> {
  static constexpr float kCentreOffset = 2.5f;
  static constexpr std::array<float, 9> kCentre = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                                                   -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                                                   -0.00417768164f,  0.246640727f,    1.50140941f};
  static constexpr float kTailFrom = 5.0f;
  static constexpr float kTailOffset = 3.0f;
  static constexpr std::array<float, 9> kTail = {-0.000200214257f, 0.000100950558f, 0.00134934322f,
                                                 -0.00367342844f,  0.00573950773f,  -0.0076224613f,
                                                 0.00943887047f,   1.00167406f,     2.83297682f};
  static constexpr bool kHasFarTail = false;  // w stays below 17 in float
};

template <>
struct ErfinvCoefficients<double> {
  static constexpr double kCentreOffset = 3.125;
  static constexpr std::array<double, 23> kCentre = {
      -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
      -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
      -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
      1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
      -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
      -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
  static constexpr double kTailFrom = 6.25;
  static constexpr double kTailOffset = 3.25;
  static constexpr std::array<double, 19> kTail = {
      2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
      1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
      -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
      0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
      0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
  static constexpr bool kHasFarTail = true;
  static constexpr double kFarTailFrom = 16.0;
  static constexpr double kFarTailOffset = 5.0;
  static constexpr std::array<double, 17> kFarTail = {
      -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,  -3.7894654401267369937e-09,
      7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08,  -6.7711997758452339498e-08,
      2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
      7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
      4.8499064014085844221};
};

}  // namespace brigade::random
